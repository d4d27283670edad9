package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// OS is the real disk.
func OS() FS { return osFS{} }

type osFS struct{}

const (
	tempPrefix = ".tmp-"
	tempTries  = 100
)

// IsTemp reports whether a file name is one that WriteTemp makes. Such a file that
// no process is about to rename was left behind by a kill or a power cut.
func IsTemp(name string) bool {
	return strings.HasPrefix(filepath.Base(name), tempPrefix)
}

// WriteTemp implements FS.
func (osFS) WriteTemp(path string, data []byte, perm fs.FileMode, flush Flush) (string, error) {
	f, err := createTemp(path, newFile(perm))
	if err != nil {
		return "", pathError("write", path, err)
	}
	written, closed := writeAndFlush(f, data, flush), f.Close()
	if written != nil || closed != nil {
		return "", pathError("write", path, written, closed, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// newFile creates a file of a name that is free.
func newFile(perm fs.FileMode) func(name string) (*os.File, error) {
	return func(name string) (*os.File, error) { return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm) }
}

// createTemp never opens a file that exists, so two writers cannot share one.
func createTemp(path string, create func(name string) (*os.File, error)) (*os.File, error) {
	for range tempTries {
		name := fmt.Sprintf("%s%s-%016x", tempPrefix, filepath.Base(path), rand.Uint64())
		f, err := create(filepath.Join(filepath.Dir(path), name))
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("no free temporary name in %d tries", tempTries)
}

func writeAndFlush(f *os.File, data []byte, flush Flush) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	switch flush {
	case StartFlush:
		return startFlush(f, int64(len(data)))
	case FullFlush:
		return f.Sync()
	default:
		return nil
	}
}

// Rename implements FS.
func (osFS) Rename(from, to string) error {
	return pathError("rename to", to, rename(from, to))
}

// Append implements FS.
func (osFS) Append(path string, data []byte, perm fs.FileMode, flush Flush) error {
	f, err := careful.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, perm, careful.Follow)
	if err != nil {
		return pathError("append to", path, err)
	}
	return pathError("append to", path, appendTo(f, data, flush), f.Close())
}

// appendTo takes back what a full disk or a failed flush has left half written.
func appendTo(f *os.File, data []byte, flush Flush) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := writeAndFlush(f, data, flush); err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return nil
}

// Truncate implements FS.
func (osFS) Truncate(path string, size int64) error { return os.Truncate(path, size) }

// Remove implements FS.
func (osFS) Remove(path string) error { return os.Remove(path) }

// MkdirAll implements FS.
func (osFS) MkdirAll(path string, perm fs.FileMode) error { return os.MkdirAll(path, perm) }

// Touch implements FS.
func (osFS) Touch(path string) error { return pathError("touch", path, touch(path)) }

// StartSync implements FS.
func (osFS) StartSync(path string) error {
	f, err := openForSync(path)
	if err != nil {
		return pathError("flush", path, err)
	}
	return pathError("flush", path, startFlush(f, 0), f.Close())
}

// SyncFile implements FS.
func (osFS) SyncFile(path string) error {
	f, err := openForSync(path)
	if err != nil {
		return pathError("flush", path, err)
	}
	return pathError("flush", path, f.Sync(), f.Close())
}

// SyncDir implements FS.
func (osFS) SyncDir(path string) error {
	return pathError("flush", path, syncDir(path))
}

type notFile struct{ *careful.NotFileError }

func (e notFile) Error() string { return e.Reason() }
func (e notFile) Unwrap() error { return e.NotFileError }

// pathError joins what went wrong, or returns nil. It names the file that the
// caller knows, where the causes name a temporary one.
func pathError(op, path string, errs ...error) error {
	var causes []error
	for _, err := range errs {
		if err != nil {
			causes = append(causes, cause(err))
		}
	}
	switch len(causes) {
	case 0:
		return nil
	case 1:
		return &fs.PathError{Op: op, Path: path, Err: causes[0]}
	default:
		return &fs.PathError{Op: op, Path: path, Err: errors.Join(causes...)}
	}
}

// cause strips the path from an error of package os, or careful.
func cause(err error) error {
	if e := (*careful.NotFileError)(nil); errors.As(err, &e) {
		return notFile{e}
	}
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	if e := (*os.LinkError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
