package fsstore

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/united-workforce/uwf/util/durable"
)

// carryOut writes what is missing and flushes everything, as mode says.
func (s *Store) carryOut(ctx context.Context, p plan, mode string) error {
	flush := durable.FullFlush
	if mode == flushNone {
		flush = durable.NoFlush
	}
	dirs := map[string]bool{}
	for _, f := range p.missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.writeFile(f, flush); err != nil {
			return err
		}
		dirs[filepath.Dir(f.path)] = true
	}
	if mode == flushNone {
		return nil
	}
	for _, path := range p.present {
		if err := s.fs.SyncFile(path); err != nil {
			return err
		}
		dirs[filepath.Dir(path)] = true
	}
	dirs[filepath.Join(s.dir, nodesDir)] = true
	for dir := range dirs {
		if err := s.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeFile(f file, flush durable.Flush) error {
	if err := s.fs.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	temp, err := s.fs.WriteTemp(f.path, f.data, 0o444, flush)
	if err != nil {
		return err
	}
	if err := s.fs.Rename(temp, f.path); err != nil {
		return errors.Join(err, s.fs.Remove(temp))
	}
	return nil
}
