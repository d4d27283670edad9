package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/united-workforce/uwf/util/careful"
)

// Beneath is the disk below a directory that strangers may write, too: whatever a path leads
// through, nothing is changed outside of the directory, and no link is written through.
func Beneath(dir string) FS { return &beneath{dir: dir} }

type beneath struct {
	osFS
	dir string

	mu   sync.Mutex
	root *os.Root // of dir, opened once; nil: not yet
}

// open opens the directory, which must be there.
func (b *beneath) open() (_ *os.Root, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root == nil {
		b.root, err = os.OpenRoot(b.dir)
	}
	return b.root, err
}

// within calls do with the directory and a path below it.
func (b *beneath) within(op, path string, do func(root *os.Root, name string) error) error {
	name, err := filepath.Rel(b.dir, path)
	if err != nil {
		return pathError(op, path, err)
	}
	root, err := b.open()
	if err != nil {
		return pathError(op, path, err)
	}
	return pathError(op, path, do(root, name))
}

// WriteTemp implements FS.
func (b *beneath) WriteTemp(path string, data []byte, perm fs.FileMode, flush Flush) (temp string, err error) {
	err = b.within("write", path, func(root *os.Root, name string) error {
		f, err := createTemp(name, func(name string) (*os.File, error) {
			return root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
		})
		if err != nil {
			return err
		}
		temp = filepath.Join(filepath.Dir(path), filepath.Base(f.Name()))
		written, closed := writeAndFlush(f, data, flush), f.Close()
		if written != nil || closed != nil {
			return errors.Join(written, closed, b.Remove(temp))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return temp, nil
}

// Rename implements FS.
func (b *beneath) Rename(from, to string) error {
	old, err := filepath.Rel(b.dir, from)
	if err != nil {
		return pathError("rename to", to, err)
	}
	return b.within("rename to", to, func(root *os.Root, name string) error { return root.Rename(old, name) })
}

// openFile opens a file that is no link, which is checked before it is opened and after.
func openFile(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &careful.NotFileError{Path: name, Mode: info.Mode().Type()}
	}
	f, err := root.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	at, lerr := root.Lstat(name)
	if err = errors.Join(err, lerr); err == nil && !os.SameFile(is, at) {
		err = &careful.NotFileError{Path: name, Mode: at.Mode().Type()}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Append implements FS.
func (b *beneath) Append(path string, data []byte, perm fs.FileMode, flush Flush) error {
	return b.within("append to", path, func(root *os.Root, name string) error {
		f, err := openFile(root, name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, perm)
		if err != nil {
			return err
		}
		return errors.Join(appendTo(f, data, flush), f.Close())
	})
}

// Truncate implements FS.
func (b *beneath) Truncate(path string, size int64) error {
	return b.within("truncate", path, func(root *os.Root, name string) error {
		f, err := openFile(root, name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(size), f.Close())
	})
}

// Remove implements FS.
func (b *beneath) Remove(path string) error {
	return b.within("remove", path, func(root *os.Root, name string) error { return root.Remove(name) })
}

// MkdirAll implements FS. The directory itself is made like any other.
func (b *beneath) MkdirAll(path string, perm fs.FileMode) error {
	if err := b.osFS.MkdirAll(b.dir, perm); err != nil || filepath.Clean(path) == filepath.Clean(b.dir) {
		return err
	}
	return b.within("make", path, func(root *os.Root, name string) error { return root.MkdirAll(name, perm) })
}
