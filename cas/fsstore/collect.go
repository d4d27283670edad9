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
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// Operations for a collector and a repair. They are safe because of a lock: writers hold it shared, see
// [Store.LockShared], and a process that removes files holds it exclusively.

const collectLock = "gc.lock"

// Exclusive is exclusive write access to a store. Other processes can still read.
type Exclusive struct {
	store *Store
	lock  *durable.Held
}

// LockExclusive waits for exclusive access. It returns [cas.ErrReadOnly], or an error if the store doesn't exist or
// is the original's, which has no lock.
func (s *Store) LockExclusive(ctx context.Context) (*Exclusive, error) {
	switch {
	case !s.Exists() || s.format.Layout != fan2:
		return nil, fmt.Errorf("%w: %s has no %s", cas.ErrReadOnly, s.dir, formatFile)
	}
	held, err := durable.LockExclusive(ctx, filepath.Join(s.dir, collectLock))
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return &Exclusive{store: s, lock: held}, nil
}

// Release ends the exclusive access.
func (o *Exclusive) Release() error { return o.lock.Unlock() }

// Remove removes the file of a node. Errors wrap [fs.ErrNotExist] if there is
// none.
func (o *Exclusive) Remove(h cas.Hash) error { return o.store.fs.Remove(o.store.path(h)) }

// RemoveTemp removes a temporary file of a killed writer; path comes from [Store.Strays].
func (o *Exclusive) RemoveTemp(path string) error {
	if !durable.IsTemp(path) {
		return fmt.Errorf("remove %s: not a temporary file", path)
	}
	return o.store.fs.Remove(path)
}

// Quarantine moves a file of the store to <store>/quarantine, under an unused name, and returns its new path.
func (o *Exclusive) Quarantine(path string) (string, error) {
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

// Restore moves a misplaced file to its node's place, unless the place is taken.
func (o *Exclusive) Restore(stray string, h cas.Hash) error {
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

// Path returns the path of a node's file, which needn't exist. h must be valid.
func (s *Store) Path(h cas.Hash) string {
	if other := s.elsewhere(h); other != "" && !isAt(s.path(h)) && isAt(other) {
		return other
	}
	return s.path(h)
}

// Stat returns the size of a node's file in bytes, and the time when it was last written or put again. Errors
// wrap [fs.ErrNotExist] if the file doesn't exist.
func (s *Store) Stat(h cas.Hash) (size int64, at time.Time, err error) {
	info, err := os.Stat(s.Path(h))
	if err != nil {
		return 0, time.Time{}, err
	}
	return info.Size(), info.ModTime(), nil
}

// Stray is a misplaced file.
type Stray struct {
	Path string
	Hash cas.Hash // hash in its name; "" for a temporary file
	Size int64
	At   time.Time
}

// Strays yields node files in the wrong directory, including those of other layouts, and temporary files that
// writers use or have left behind. It ignores other names. After an error it continues with what is still
// readable.
func (s *Store) Strays(ctx context.Context) iter.Seq2[Stray, error] {
	return func(yield func(Stray, error) bool) {
		walk := func(path string, e fs.DirEntry, err error) error {
			if err := ctx.Err(); err != nil {
				yield(Stray{}, err)
				return fs.SkipAll
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // the file was just removed, or there are no nodes yet
			}
			if err != nil {
				return keepGoing(yield(Stray{}, err))
			}
			if e.IsDir() && hashOf(e.Name()) == "" {
				if filepath.Dir(path) == s.dir && e.Name() != nodesDir {
					return fs.SkipDir // other directories next to the nodes
				}
				return nil
			}
			if e.IsDir() {
				return cmp.Or(keepGoing(s.stray(path, e, yield)), fs.SkipDir)
			}
			return keepGoing(s.stray(path, e, yield))
		}
		_ = filepath.WalkDir(s.dir, walk) // walk handles all errors
	}
}

// stray yields a file if it is a stray; false stops the walk.
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

func keepGoing(ok bool) error {
	if ok {
		return nil
	}
	return fs.SkipAll
}

// ReadStray reads a misplaced file as the node in its name.
func (s *Store) ReadStray(stray Stray) (cas.Node, error) {
	data, err := readBounded(stray.Path, stray.Hash)
	if err != nil {
		return cas.Node{}, err
	}
	return s.format.Hash.UnmarshalFile(stray.Hash, data)
}

// LockShared implements [cas.SharedLocker]. In a store of the original it does nothing, because it isn't
// collected and we add no files to it. A store that doesn't exist yet is locked as soon as this Store creates
// it.
func (s *Store) LockShared(ctx context.Context) (release func() error, err error) {
	if s.format.Layout != fan2 {
		return func() error { return nil }, ctx.Err()
	}
	if later := s.acquireLater(); later != nil {
		return later.release, ctx.Err()
	}
	if err := s.rememberHome(); err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return s.acquire(ctx)
}

func (s *Store) acquire(ctx context.Context) (release func() error, err error) {
	lock := filepath.Join(s.dir, collectLock)
	if s.holds.Add(1) == 1 {
		durable.YieldToExclusive(ctx, lock)
	}
	held, err := durable.LockShared(ctx, lock)
	if err != nil {
		s.holds.Add(-1)
	}
	if isPermission(err) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return func() error {
		s.holds.Add(-1)
		return held.Unlock()
	}, nil
}

// lazyLock is a lock on a store that doesn't exist yet.
type lazyLock struct {
	store    *Store
	released bool
	unlock   func() error // nil until the store exists
}

// acquireLater registers a lock on a store that doesn't exist yet; nil if it does.
func (s *Store) acquireLater() *lazyLock {
	s.making.Lock()
	defer s.making.Unlock()
	if s.made {
		return nil
	}
	h := &lazyLock{store: s}
	s.later = append(s.later, h)
	return h
}

// release releases the lock, whether or not the store was created since.
func (h *lazyLock) release() error {
	h.store.making.Lock()
	defer h.store.making.Unlock()
	if h.released || h.unlock == nil {
		h.released = true
		return nil
	}
	h.released = true
	return h.unlock()
}

// acquireNow acquires the registered locks. It is called before the store has a format, without which it isn't
// collected. s.making must be locked.
func (s *Store) acquireNow(ctx context.Context) error {
	for _, h := range s.later {
		if h.released {
			continue
		}
		unlock, err := s.acquire(ctx)
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		h.unlock = unlock
	}
	s.later = nil
	return nil
}

// A store records which homes use it, so that the collector keeps what their threads need:
// <store>/homes/<hash of the path> contains the path of a home. It is written before the first node that the
// home can reference. The home that contains the store isn't recorded.
//
// A home with an ephemeral.lock is temporary, such as that of a worker's slot: it counts while a process
// holds the lock, shared, and is then forgotten. The creator of such a home holds it, and so does each
// process that puts nodes there, until it exits.

const (
	homesDir = "homes"

	// EphemeralLock is the lock file in a temporary home.
	EphemeralLock = "ephemeral.lock"

	ephemeral = "ephemeral" // second line of the record of such a home
)

// Homes returns the homes that have used the store, and the store's parent directory if it looks like a home.
// They might no longer exist.
func (s *Store) Homes() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, homesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var homes []string
	for _, e := range entries {
		if durable.IsTemp(e.Name()) {
			continue
		}
		data, err := readSmall(filepath.Join(s.dir, homesDir, e.Name()))
		if err != nil {
			return nil, err
		}
		home, kind, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
		if !filepath.IsAbs(home) {
			continue
		}
		if kind == ephemeral && isRemoved(home, filepath.Join(s.dir, homesDir, e.Name())) {
			continue
		}
		homes = append(homes, home)
	}
	if parent := filepath.Dir(s.dir); looksLikeHome(parent) {
		homes = append(homes, parent)
	}
	slices.Sort(homes)
	return slices.Compact(homes), nil
}

// isRemoved reports whether an ephemeral home is no longer used; if so, it removes the store's record while
// no process can enter.
func isRemoved(home, file string) bool {
	path := filepath.Join(home, EphemeralLock)
	_, err := os.Lstat(path)
	if err == nil {
		lock, err := durable.TryLock(path)
		if err != nil {
			return false
		}
		defer func() { _ = lock.Unlock() }()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_ = os.Remove(file) // otherwise the next caller does it
	return true
}

// enter keeps an ephemeral home alive until the process exits, and reports whether the home is ephemeral.
func (s *Store) enter() (bool, error) {
	path := filepath.Join(s.home, EphemeralLock)
	if _, err := os.Lstat(path); err != nil {
		return false, nil //nolint:nilerr // it is not there
	}
	s.entering.Lock()
	defer s.entering.Unlock()
	if s.entered != nil {
		return true, nil
	}
	lock, err := durable.LockShared(context.Background(), path)
	s.entered = lock
	return true, err
}

// HomeFile returns the path of the store's record of a home.
func (s *Store) HomeFile(home string) string {
	return filepath.Join(s.dir, homesDir, strings.ToLower(string(cas.XXH64.Sum("", []byte(home)))))
}

// looksLikeHome reports whether a directory contains an index.
func looksLikeHome(dir string) bool {
	for _, name := range []string{"threads.yaml", "history.jsonl", "registry.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// rememberHome records the home once. A process that can't write to the store can't put nodes either.
func (s *Store) rememberHome() error {
	if s.home == "" || s.guest || filepath.Dir(s.dir) == s.home {
		return nil
	}
	passing, err := s.enter()
	if err != nil {
		return err
	}
	path, text := s.HomeFile(s.home), s.home+"\n"
	if passing {
		text += ephemeral + "\n"
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	err = durable.MkdirAll(s.fs, filepath.Dir(path), 0o755)
	if err == nil {
		err = durable.WriteFile(s.fs, path, []byte(text), 0o644)
	}
	if isPermission(err) {
		return nil
	}
	return err
}
