package project

import (
	"fmt"
	"os"
	"path/filepath"
)

// File finds a file of the project by its path from the directory that it belongs to:
// the nearest one. No link leads out of that directory. "" is none; ignored are files
// that do not count, and the directories of such.
func (s Search) File(name string) (path string, ignored []Ignored, err error) {
	if !filepath.IsAbs(s.Dir) {
		return "", nil, nil // a thread of the original's that has no directory is in no project
	}
	dirs, _, err := s.Dirs()
	if err != nil {
		return "", nil, fmt.Errorf("find %s: %w", name, err)
	}
	for _, dir := range dirs {
		found, more, err := s.fileOf(dir, name)
		ignored = append(ignored, more...)
		if err != nil {
			return "", ignored, fmt.Errorf("find %s: %w", name, err)
		}
		if found {
			return filepath.Join(dir, name), ignored, nil
		}
	}
	return "", ignored, nil
}

func (s Search) fileOf(dir, name string) (found bool, ignored []Ignored, err error) {
	if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
		return false, nil, nil // also one that may not be looked at
	}
	files, err := s.Open(dir)
	if err != nil {
		return false, nil, err
	}
	defer func() { _ = files.Close() }() // opened for reading only
	for _, part := range []string{filepath.Dir(name), name} {
		if info, err := files.Look(part); err != nil || info == nil {
			return false, files.Ignored, err
		}
	}
	return true, nil, nil
}
