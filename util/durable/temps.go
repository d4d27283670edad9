package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RemoveTemps removes the temporary files that killed processes have left behind
// of a file: whole copies of it, with all that it held then. Call it with the lock
// under which alone the file is written. A missing directory has none.
func RemoveTemps(fsys FS, path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if digits, ok := strings.CutPrefix(name, tempPrefix+filepath.Base(path)+"-"); ok && isTempNumber(digits) {
			if gone := fsys.Remove(filepath.Join(filepath.Dir(path), name)); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}

// isTempNumber: a file may be called like another with a dash after it.
func isTempNumber(s string) bool { return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == "" }
