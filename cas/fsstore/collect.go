package fsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// What a collector and a repair need. The lock is what makes them safe: writers
// hold it shared, see [Store.Hold], and who takes files away holds it alone.

const collectLock = "gc.lock"

// Sole is a store that this process has to itself: nobody puts anything.
// Reading goes on.
type Sole struct {
	store *Store
	lock  *durable.Held
}

// Alone waits until nobody holds the store. Errors: [cas.ErrReadOnly]; a store
// that is not there, or the original's, which has no lock.
func (s *Store) Alone(ctx context.Context) (*Sole, error) {
	switch {
	case !s.Exists() || s.format.Layout != fan2:
		return nil, fmt.Errorf("%w: %s has no %s", cas.ErrReadOnly, s.dir, formatFile)
	}
	held, err := durable.LockAlone(ctx, filepath.Join(s.dir, collectLock))
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return &Sole{store: s, lock: held}, nil
}

// Release lets the others in again.
func (o *Sole) Release() error { return o.lock.Unlock() }

// Remove removes the file of a node. Errors wrap [fs.ErrNotExist] if there is
// none.
func (o *Sole) Remove(h cas.Hash) error { return o.store.fs.Remove(o.store.path(h)) }

// RemoveTemp removes what a killed writer has left; path is from [Store.Strays].
func (o *Sole) RemoveTemp(path string) error {
	if !durable.IsTemp(path) {
		return fmt.Errorf("remove %s: it is not a temporary file", path)
	}
	return o.store.fs.Remove(path)
}

// Quarantine moves a file of the store to <store>/quarantine, under a name that
// is free there, and returns its new path.
func (o *Sole) Quarantine(path string) (string, error) {
	dir := filepath.Join(o.store.dir, quarantineDir)
	if err := durable.MkdirAll(o.store.fs, dir, 0o755); err != nil {
		return "", err
	}
	to, err := freeName(filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		return "", err
	}
	if err := o.store.fs.Rename(path, to); err != nil {
		return "", err
	}
	return to, errors.Join(o.store.fs.SyncDir(dir), o.store.fs.SyncDir(filepath.Dir(path)))
}

// Restore moves a misplaced file to where its node belongs, unless one is there.
func (o *Sole) Restore(stray string, h cas.Hash) error {
	to := o.store.path(h)
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s %w", to, fs.ErrExist)
	}
	if err := durable.MkdirAll(o.store.fs, filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := o.store.fs.Rename(stray, to); err != nil {
		return err
	}
	return errors.Join(o.store.fs.SyncDir(filepath.Dir(to)), o.store.fs.SyncDir(filepath.Dir(stray)))
}

const quarantineDir = "quarantine"

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

// Path is the file of a node; h must be valid. The file need not exist.
func (s *Store) Path(h cas.Hash) string {
	if other := s.elsewhere(h); other != "" && !isAt(s.path(h)) && isAt(other) {
		return other
	}
	return s.path(h)
}

// Stat is the size of a node's file in bytes and the time when it was last
// written or put again. Errors wrap [fs.ErrNotExist] if there is none.
func (s *Store) Stat(h cas.Hash) (size int64, at time.Time, err error) {
	info, err := os.Stat(s.Path(h))
	if err != nil {
		return 0, time.Time{}, err
	}
	return info.Size(), info.ModTime(), nil
}

// Stray is a file among the nodes that is not where a node belongs.
type Stray struct {
	Path string
	Hash cas.Hash // of the node that its name promises; "": a temporary file
	Size int64
	At   time.Time
}

// Strays yields the node files that lie in a wrong directory, also where another
// layout has them, and the temporary files that writers are at or have left. Files
// of other names are nobody's business. After an error it goes on with what can
// still be read.
func (s *Store) Strays(ctx context.Context) iter.Seq2[Stray, error] {
	return func(yield func(Stray, error) bool) {
		walk := func(path string, e fs.DirEntry, err error) error {
			if err := ctx.Err(); err != nil {
				yield(Stray{}, err)
				return fs.SkipAll
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a file that is gone again, or no node was ever put
			}
			if err != nil {
				return goOn(yield(Stray{}, err))
			}
			if e.IsDir() && hashOf(e.Name()) == "" {
				if filepath.Dir(path) == s.dir && e.Name() != nodesDir {
					return fs.SkipDir // what else there is beside the nodes
				}
				return nil
			}
			if e.IsDir() {
				return cmp.Or(goOn(s.stray(path, e, yield)), fs.SkipDir)
			}
			return goOn(s.stray(path, e, yield))
		}
		_ = filepath.WalkDir(s.dir, walk) // walk passes every error on
	}
}

// stray yields one file if it is one; false: stop.
func (s *Store) stray(path string, e fs.DirEntry, yield func(Stray, error) bool) bool {
	h := hashOf(e.Name())
	if (h == "" || s.path(h) == path || s.elsewhere(h) == path) && !durable.IsTemp(path) {
		return true
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return yield(Stray{}, err)
	}
	return yield(Stray{Path: path, Hash: h, Size: info.Size(), At: info.ModTime()}, nil)
}

func goOn(ok bool) error {
	if ok {
		return nil
	}
	return fs.SkipAll
}

// ReadStray reads a misplaced file as the node that its name promises.
func (s *Store) ReadStray(stray Stray) (cas.Node, error) {
	data, err := readBounded(stray.Path, stray.Hash)
	if err != nil {
		return cas.Node{}, err
	}
	return s.format.Hash.UnmarshalFile(stray.Hash, data)
}
