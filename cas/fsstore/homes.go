package fsstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// A store remembers which homes use it, so that the collector keeps what their
// threads need without being told: <store>/homes/<hash of the path> holds the path
// of a home. It is written before the first node that such a home may name. The home that
// contains the store is not recorded.
//
// A home with an ephemeral.lock in it is temporary, such as that of a worker's slot: it
// counts while somebody holds the lock, shared, and is then forgotten. The maker of such a
// home holds it; so does each process that puts nodes there, until it ends.

const (
	homesDir = "homes"

	// EphemeralLock is a file in a temporary home.
	EphemeralLock = "ephemeral.lock"

	ephemeral = "ephemeral" // the second line about such a home
)

// Homes are the homes that have used the store, and the directory that it is in
// if that looks like a home. They may no longer exist.
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
		if kind == ephemeral && forgotten(home, filepath.Join(s.dir, homesDir, e.Name())) {
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

// forgotten reports whether nobody uses an ephemeral home any longer; if so, it removes the
// store's file about it while nobody can enter.
func forgotten(home, file string) bool {
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

// enter keeps an ephemeral home alive until the process ends; it reports whether the home
// is one.
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

// HomeFile is where the store remembers a home.
func (s *Store) HomeFile(home string) string {
	return filepath.Join(s.dir, homesDir, strings.ToLower(string(cas.XXH64.Sum("", []byte(home)))))
}

// looksLikeHome reports whether there is an index in a directory.
func looksLikeHome(dir string) bool {
	for _, name := range []string{"threads.yaml", "history.jsonl", "registry.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// rememberHome records the home, once. A process that may not write to the store cannot put
// nodes that a home could name.
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
	if mayNot(err) {
		return nil
	}
	return err
}
