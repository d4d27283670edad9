package places

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/safeopen"
)

// opaque is set for a directory in a layer that hides what lies below it.
const opaque = "user.overlay.opaque"

// Copy copies what lies over a thread's places for a thread that goes on from there. It does nothing
// if there is nothing, or the other has some already.
func Copy(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if _, err := os.Lstat(from); err != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(to), ".copy-")
	if err != nil {
		return err
	}
	if err := copyTree(from, temp); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return os.Rename(temp, to)
}

// copyTree copies a directory with what an overlay has noted in it.
func copyTree(from, to string) error {
	root, err := os.OpenRoot(from) // nothing in it leads out
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if entry != nil && filepath.Base(name) == workDir && strings.Count(name, "/") == 1 {
			return fs.SkipDir
		}
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		at := filepath.Join(to, name)
		switch info.Mode().Type() {
		case fs.ModeDir:
			if err := os.Mkdir(at, info.Mode().Perm()|0o700); err != nil {
				return err
			}
			if n, err := unix.Lgetxattr(filepath.Join(from, name), opaque, make([]byte, 1)); err == nil && n == 1 {
				return unix.Lsetxattr(at, opaque, []byte("y"), 0)
			}
			return nil
		case fs.ModeSymlink:
			link, err := root.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(link, at)
		case fs.ModeDevice | fs.ModeCharDevice:
			return unix.Mknod(at, unix.S_IFCHR, 0) // it hides a name
		case 0:
			return copyFile(root, name, at, info.Mode().Perm())
		}
		return nil
	})
}

func copyFile(root *os.Root, name, to string, mode fs.FileMode) error {
	from, err := safeopen.OpenIn(root, name)
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
