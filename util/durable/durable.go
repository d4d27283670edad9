// Package durable is the program's only way to change a disk. Every write, rename, removal and flush goes
// through an [FS], so that a test can record them and simulate a power cut after any of them (package
// durabletest).
//
// Files that reference other data are either replaced atomically ([WriteFile]: temporary file, flush, rename,
// flush of the directory) or appended to and flushed ([AppendFile]); both require a [Lock] if several
// processes can write. [WriteAll] writes many files that nothing references yet as one unit.
//
// Lock files are the only exception: they contain no data, so they bypass FS.
package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/util/safeopen"
)

// FS contains all operations that change a disk. Errors are *[fs.PathError] with the caller's path.
type FS interface {
	// WriteTemp creates a file with a unique name next to path and returns that name. flush determines how
	// durable the content is. After an error no file remains.
	WriteTemp(path string, data []byte, perm fs.FileMode, flush Flush) (temp string, err error)
	// Rename atomically replaces to, if it exists.
	Rename(from, to string) error
	// Append appends data to path and creates the file if necessary. After an error the file has its previous
	// length. Append isn't atomic: if the process is killed, a part can remain.
	Append(path string, data []byte, perm fs.FileMode, flush Flush) error
	// Extend appends data to a regular file, never through a symbolic or hard link, unless that makes it longer than
	// most bytes. It doesn't flush. Like Append, it isn't atomic.
	Extend(path string, data []byte, most int64) error
	Truncate(path string, size int64) error
	Remove(path string) error
	MkdirAll(path string, perm fs.FileMode) error
	// Touch sets the modification time of path to now, by the clock that also stamps writes. It isn't
	// flushed.
	Touch(path string) error
	// SyncFile and SyncDir make the content of path, or the names in it, durable.
	SyncFile(path string) error
	SyncDir(path string) error
}

// Flush determines how far data is written before a write returns.
type Flush int

// The levels of flushing.
const (
	NoFlush   Flush = iota // in the page cache: survives a kill, but not a power cut
	FullFlush              // durable on the disk
)

// OS returns the real disk.
func OS() FS { return &disk{} }

// Rooted returns the disk below a directory that untrusted users can also write. It changes nothing outside
// the directory and doesn't write through links.
func Rooted(dir string) FS { return &disk{dir: dir} }

type disk struct {
	dir string // "": everything

	mu   sync.Mutex
	root *os.Root // opened on first use
}

// directory is what package os and an [os.Root] have in common.
type directory interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Rename(from, to string) error
	Remove(name string) error
	MkdirAll(path string, perm fs.FileMode) error
}

// everything is the directory that contains all paths.
type everything struct{}

// OpenFile implements directory.
func (everything) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&os.O_EXCL != 0 {
		return os.OpenFile(name, flag, perm)
	}
	return safeopen.OpenFile(name, flag, perm, safeopen.Follow)
}

// Rename implements directory.
func (everything) Rename(from, to string) error { return rename(from, to) }

// Remove implements directory.
func (everything) Remove(name string) error { return os.Remove(name) }

// MkdirAll implements directory.
func (everything) MkdirAll(path string, perm fs.FileMode) error { return os.MkdirAll(path, perm) }

// below is a directory outside of which nothing changes.
type below struct{ *os.Root }

// OpenFile opens a file that isn't a link, which it checks before and after opening, unless it creates the file.
func (b below) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&os.O_EXCL != 0 {
		return b.Root.OpenFile(name, flag, perm)
	}
	if info, err := b.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &safeopen.NotFileError{Path: name, Mode: info.Mode().Type()}
	}
	f, err := b.Root.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	at, lerr := b.Lstat(name)
	if err = errors.Join(err, lerr); err == nil && !os.SameFile(is, at) {
		err = &safeopen.NotFileError{Path: name, Mode: at.Mode().Type()}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// within calls do with the directory, which must exist, and a path relative to it.
func (d *disk) within(op, path string, do func(at directory, name string) error) error {
	if d.dir == "" {
		return pathError(op, path, do(everything{}, path))
	}
	name, err := filepath.Rel(d.dir, path)
	if err != nil {
		return pathError(op, path, err)
	}
	d.mu.Lock()
	if d.root == nil {
		d.root, err = os.OpenRoot(d.dir)
	}
	d.mu.Unlock()
	if err != nil {
		return pathError(op, path, err)
	}
	return pathError(op, path, do(below{d.root}, name))
}

const (
	tempPrefix = ".tmp-"
	tempTries  = 100
)

// IsTemp reports whether a file name has the form used by WriteTemp. Such a file was left by a killed process
// or a power cut unless a process is about to rename it.
func IsTemp(name string) bool {
	return strings.HasPrefix(filepath.Base(name), tempPrefix)
}

// WriteTemp implements FS. It never opens an existing file, so two writers can't share one.
func (d *disk) WriteTemp(path string, data []byte, perm fs.FileMode, flush Flush) (temp string, err error) {
	err = d.within("write", path, func(at directory, name string) error {
		for range tempTries {
			base := fmt.Sprintf("%s%s-%016x", tempPrefix, filepath.Base(path), rand.Uint64())
			temp, name = filepath.Join(filepath.Dir(path), base), filepath.Join(filepath.Dir(name), base)
			f, err := at.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
			if errors.Is(err, fs.ErrExist) {
				continue
			}
			if err != nil {
				return err
			}
			if err := errors.Join(writeAndFlush(f, data, flush), f.Close()); err != nil {
				return errors.Join(err, at.Remove(name))
			}
			return nil
		}
		return fmt.Errorf("no free temporary name in %d tries", tempTries)
	})
	if err != nil {
		return "", err
	}
	return temp, nil
}

func writeAndFlush(f *os.File, data []byte, flush Flush) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if flush == FullFlush {
		return f.Sync()
	}
	return nil
}

// Rename implements FS.
func (d *disk) Rename(from, to string) error {
	return d.within("rename to", to, func(at directory, name string) error {
		if d.dir == "" {
			return at.Rename(from, name)
		}
		old, err := filepath.Rel(d.dir, from)
		if err != nil {
			return err
		}
		return at.Rename(old, name)
	})
}

// Append implements FS.
func (d *disk) Append(path string, data []byte, perm fs.FileMode, flush Flush) error {
	return d.within("append to", path, func(at directory, name string) error {
		f, err := at.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, perm)
		if err != nil {
			return err
		}
		return errors.Join(appendTo(f, data, flush), f.Close())
	})
}

// Extend implements FS.
func (d *disk) Extend(path string, data []byte, most int64) error {
	return d.within("append to", path, func(at directory, name string) error {
		open := at.OpenFile
		if d.dir == "" {
			open = func(name string, flag int, perm fs.FileMode) (*os.File, error) {
				return safeopen.OpenFile(name, flag, perm, safeopen.NoFollow)
			}
		}
		f, err := open(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		switch {
		case err != nil:
		case HasOtherNames(info):
			err = errors.New("it has several names")
		case info.Size()+int64(len(data)) > most:
			err = &safeopen.TooBigError{Path: path, Max: most}
		}
		if err == nil {
			err = appendTo(f, data, NoFlush)
		}
		return errors.Join(err, f.Close())
	})
}

// appendTo removes partially written data after a full disk or a failed flush.
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
func (d *disk) Truncate(path string, size int64) error {
	return d.within("truncate", path, func(at directory, name string) error {
		f, err := at.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(size), f.Close())
	})
}

// Remove implements FS.
func (d *disk) Remove(path string) error {
	return d.within("remove", path, func(at directory, name string) error { return at.Remove(name) })
}

// MkdirAll implements FS. It also creates the directory of [Rooted].
func (d *disk) MkdirAll(path string, perm fs.FileMode) error {
	if d.dir != "" {
		if err := os.MkdirAll(d.dir, perm); err != nil || filepath.Clean(path) == filepath.Clean(d.dir) {
			return err
		}
	}
	return d.within("make", path, func(at directory, name string) error { return at.MkdirAll(name, perm) })
}

// Touch implements FS.
func (*disk) Touch(path string) error { return pathError("touch", path, touch(path)) }

// SyncFile implements FS.
func (*disk) SyncFile(path string) error {
	f, err := openForSync(path)
	if err != nil {
		return pathError("flush", path, err)
	}
	return pathError("flush", path, f.Sync(), f.Close())
}

// SyncDir implements FS.
func (*disk) SyncDir(path string) error {
	return pathError("flush", path, syncDir(path))
}

type notFile struct{ *safeopen.NotFileError }

func (e notFile) Error() string { return e.Reason() }
func (e notFile) Unwrap() error { return e.NotFileError }

// pathError returns the first error, or nil. It reports the caller's path, because the cause contains that of a
// temporary file.
func pathError(op, path string, errs ...error) error {
	err := cmp.Or(errs...)
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: cause(err)}
}

// cause removes the path from an error of package os or safeopen.
func cause(err error) error {
	if e := (*safeopen.NotFileError)(nil); errors.As(err, &e) {
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

// RemoveTemps removes the temporary files of a file that killed processes left behind: complete copies of
// earlier content. The caller must hold the lock that protects writes of the file. A missing directory is not
// an error.
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

// isTempNumber distinguishes temporary files from a file whose name is another's followed by a dash.
func isTempNumber(s string) bool { return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == "" }
