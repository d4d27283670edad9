package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/util/durable"
)

// Redact stops writers, calls check, and durably replaces nodes by tombstones. Then it removes their content
// from every segment and pack. If the process is killed in between, the nodes are redacted, but their content
// remains in the files, until Redact is repeated. It returns the errors of check, [cas.MarshalTombstone] and
// [Store.Exclusively].
func (s *Store) Redact(ctx context.Context, check func() error, tombstones ...cas.Tombstone) error {
	return s.exclusively(ctx, func(o *exclusive) error {
		if err := check(); err != nil {
			return err
		}
		plan := func(v *view) (records []pending, err error) {
			for _, t := range tombstones {
				body, err := cas.MarshalTombstone(t)
				if err != nil {
					return nil, err
				}
				_, _, err = s.resolve(v, t.Hash)
				if redacted, ok := cas.AsRedacted(err); ok && redacted.Tombstone == t {
					continue
				}
				records = append(records, pending{kind: record.Tombstone, hash: t.Hash.Number(), body: body})
			}
			return records, nil
		}
		// Sealing the segment flushes it, when writers continue.
		if err := s.add(ctx, false, plan); err != nil {
			return fmt.Errorf("redact: %w", err)
		}
		for _, t := range tombstones {
			o.redacted = append(o.redacted, t.Hash)
		}
		return nil
	})
}

// erase removes the content of redacted nodes from all files, which can take long, while writers continue: it packs the
// segments, and the packs that contain it, without what no longer counts.
func (o *exclusive) erase(ctx context.Context) error {
	if len(o.redacted) == 0 {
		return nil
	}
	if err := o.tidy(); err != nil {
		return err
	}
	c := newCompaction(o)
	all := func(cas.Hash) bool { return true }
	err := c.begin(ctx, everything(), false)
	if err == nil {
		err = c.Write(ctx, all)
	}
	if err == nil {
		err = c.Finish(ctx, func() error { return nil }, all)
	}
	if err = errors.Join(err, c.abort()); err != nil {
		return err
	}
	return errors.Join(o.store.removeRedacted(o.redacted), o.removeQuarantined())
}

// removeQuarantined removes copies that were damaged.
func (o *exclusive) removeQuarantined() error {
	dir := filepath.Join(o.store.dir, quarantineDir)
	entries, err := os.ReadDir(dir)
	if err != nil && !isGone(err) {
		return err
	}
	removed := false
	for _, e := range entries {
		name, _, isNode := strings.Cut(e.Name(), ".bin")
		if !isNode || !slices.Contains(o.redacted, cas.Hash(name)) {
			continue
		}
		removed = true
		if err := o.store.fs.Remove(filepath.Join(dir, e.Name())); err != nil && !isGone(err) {
			return err
		}
	}
	if !removed {
		return nil
	}
	return o.store.fs.SyncDir(dir)
}

// sealNewest seals the newest segment unless it is empty, so that nothing is appended to it.
func (s *Store) sealNewest(ctx context.Context) (err error) {
	v, err := s.refresh(false)
	if err != nil || v.newest() == nil {
		return err
	}
	if err := s.sync(v.newest()); err != nil {
		return err
	}
	lock, err := durable.Lock(ctx, filepath.Join(s.dir, logLock))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if v, err = s.refresh(true); err != nil {
		return err
	}
	g := v.newest()
	if g == nil {
		return nil
	}
	if _, sealed, err := g.state(); sealed || err != nil || g.isEmpty() {
		return err
	}
	return s.seal(g)
}

// tidy removes what an interrupted collection left: temporary files, and segments that a pack replaces.
func (o *exclusive) tidy() error {
	s := o.store
	v, err := s.refresh(true)
	if err != nil {
		return err
	}
	covered := -1
	for _, g := range v.sources {
		if g.name.isPack() {
			covered = max(covered, g.name.number)
		}
	}
	return o.removeFiles(func(name string) bool {
		n, ok := parseName(name)
		return durable.IsTemp(name) || ok && !n.isPack() && n.number <= covered
	})
}

// removeFiles removes segments and packs with their indexes, indexes that belong to none, and other files.
func (o *exclusive) removeFiles(unneeded func(name string) bool) error {
	for _, dir := range []string{logDir, packsDir} {
		path := filepath.Join(o.store.dir, dir)
		entries, err := os.ReadDir(path)
		if err != nil && !isGone(err) {
			return err
		}
		removed := false
		data := map[string]bool{}
		for _, e := range entries {
			data[strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))] = filepath.Ext(e.Name()) != indexExt
		}
		for _, e := range entries {
			stem, isIndex := strings.CutSuffix(e.Name(), indexExt)
			if !unneeded(e.Name()) && (!isIndex || data[stem]) {
				continue
			}
			removed = true
			names := []string{e.Name()}
			if n, ok := parseName(e.Name()); ok {
				names = append(names, n.String()+indexExt)
			}
			for _, name := range names {
				if err := o.store.fs.Remove(filepath.Join(path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		if removed {
			if err := o.store.fs.SyncDir(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// Quarantine copies the record of a node to <store>/quarantine, under an unused name, and durably removes the
// node from the store, so that it can be put again. It returns the path of the copy.
func (s *Store) Quarantine(ctx context.Context, h cas.Hash) (to string, err error) {
	return s.quarantine(ctx, h, content)
}

// QuarantineSeal is Quarantine for the seal of a node.
func (s *Store) QuarantineSeal(ctx context.Context, h cas.Hash) (to string, err error) {
	return s.quarantine(ctx, h, seals)
}

func (s *Store) quarantine(ctx context.Context, h cas.Hash, of group) (to string, err error) {
	err = s.exclusively(ctx, func(*exclusive) (err error) {
		to, err = s.setAside(ctx, h, of)
		return err
	})
	return to, err
}

// setAside copies the newest record of a hash to the quarantine and hides all of them.
func (s *Store) setAside(ctx context.Context, h cas.Hash, of group) (to string, err error) {
	var body []byte
	err = s.try(ctx, func(v *view) error {
		at, ok, err := v.newestOf(h.Number(), of)
		switch {
		case err != nil:
			return err
		case ok:
			body, err = at.source.record(at.entry)
		}
		if errors.Is(err, errPack) || errors.As(err, new(*cas.CorruptError)) {
			return nil
		}
		return err
	})
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, quarantineDir)
	if err := durable.MkdirAll(s.fs, dir, 0o755); err != nil {
		return "", err
	}
	name, kind := string(h)+".bin", record.NoContent
	if of == seals {
		name, kind = string(h)+".seal", record.NoSeal
	}
	if to, err = freeName(filepath.Join(dir, name)); err != nil {
		return "", err
	}
	if err := durable.WriteFile(s.fs, to, body, 0o444|s.filePerm()&0o200); err != nil {
		return "", err
	}
	return to, s.add(ctx, true, func(*view) ([]pending, error) {
		return []pending{{kind: kind, hash: h.Number()}}, nil
	})
}

func freeName(path string) (string, error) {
	try := path
	for n := 2; ; n++ {
		_, err := os.Lstat(try)
		if errors.Is(err, fs.ErrNotExist) {
			return try, nil
		}
		if err != nil {
			return "", err
		}
		try = fmt.Sprintf("%s.%d", path, n)
	}
}

// Bury durably stores imported tombstones for missing nodes, and returns their hashes. An existing node,
// intact or redacted, stays unchanged. Errors: [errors.ErrUnsupported] for a store of the original; the
// errors of [Store.Commit].
func (s *Store) Bury(ctx context.Context, tombstones ...cas.Tombstone) (buried []cas.Hash, err error) {
	switch {
	case len(tombstones) == 0:
		return nil, ctx.Err()
	case s.foreign:
		return nil, fmt.Errorf("store %s: tombstones: %w: it belongs to the original", s.dir, errors.ErrUnsupported)
	}
	if err := s.make(ctx, tombstones[0].At); err != nil {
		return nil, fmt.Errorf("create store: %w", err)
	}
	planned := map[cas.Hash]bool{}
	err = s.addLocked(ctx, "tombstones", true, func(v *view) (records []pending, err error) {
		for _, t := range tombstones {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t.Foreign = true
			body, err := cas.MarshalTombstone(t)
			if err != nil {
				return nil, err
			}
			_, at, err := s.resolve(v, t.Hash)
			corrupt, isCorrupt := errors.AsType[*cas.CorruptError](err)
			if !errors.Is(err, cas.ErrNotFound) && !(isCorrupt && corrupt.Cut && at.entry.kind == record.Tombstone) {
				continue
			}
			if !planned[t.Hash] {
				planned[t.Hash], buried = true, append(buried, t.Hash)
			}
			records = append(records, pending{kind: record.Tombstone, hash: t.Hash.Number(), body: body})
		}
		return records, nil
	})
	if err != nil {
		return nil, err
	}
	return buried, nil
}
