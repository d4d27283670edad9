//go:build !linux

package endcheck

import (
	"io/fs"
	"os"
	"path/filepath"
)

// stampOf has no inode on this platform, so each directory is read again.
func stampOf(top *os.File, name string) (stamp, error) {
	info, err := os.Lstat(filepath.Join(top.Name(), filepath.FromSlash(name)))
	if err != nil {
		return stamp{}, err
	}
	modified := info.ModTime().UnixNano()
	return stamp{Modified: modified, Size: info.Size(), Dir: info.IsDir(), File: info.Mode().IsRegular(), Perm: info.Mode().Perm()}, nil
}

func renameIn(from *os.File, name string, to *os.File, as string) error {
	as = filepath.Join(to.Name(), as)
	if _, err := os.Lstat(as); err == nil {
		return fs.ErrExist
	}
	return os.Rename(filepath.Join(from.Name(), name), as)
}

func give(*os.File, *os.Root, string) {}

func fileClock() int64 { return 0 }

func bornOf(top *os.File, name string) (stamp, error) { return stampOf(top, name) }
