package fsstore

import (
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
// of a home. It is written before the first node that such a home may name. The
// home that the store lies in is not written down.

const homesDir = "homes"

// Homes are the homes that have used the store, and the directory that it lies in
// if that looks like a home. They need not exist any more.
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
		if home := strings.TrimSuffix(string(data), "\n"); filepath.IsAbs(home) {
			homes = append(homes, home)
		}
	}
	if parent := filepath.Dir(s.dir); looksLikeHome(parent) {
		homes = append(homes, parent)
	}
	slices.Sort(homes)
	return slices.Compact(homes), nil
}

// HomeFile is where the store remembers a home.
func (s *Store) HomeFile(home string) string {
	return filepath.Join(s.dir, homesDir, strings.ToLower(string(cas.XXH64.Sum("", []byte(home)))))
}

// looksLikeHome tells whether there is an index in a directory.
func looksLikeHome(dir string) bool {
	for _, name := range []string{"threads.yaml", "history.jsonl", "registry.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// rememberHome writes the home down, once. Who may not write into the store cannot
// put nodes that a home could name.
func (s *Store) rememberHome() error {
	if s.home == "" || s.guest || filepath.Dir(s.dir) == s.home {
		return nil
	}
	path := s.HomeFile(s.home)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	err := durable.MkdirAll(s.fs, filepath.Dir(path), 0o755)
	if err == nil {
		err = durable.WriteFile(s.fs, path, []byte(s.home+"\n"), 0o644)
	}
	if mayNot(err) {
		return nil
	}
	return err
}
