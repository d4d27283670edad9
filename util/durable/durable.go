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
	// Extend appends data to a regular file, never through a link, unless that makes it longer than most bytes. It doesn't
	// flush. Like Append, it isn't atomic.
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

// NewFile is a file being written that is too large for memory. It has a temporary name until
// [NewFile.Commit].
type NewFile struct {
	f    *os.File
	path string
}

// Create starts a file that will replace path. Its mode is 0600 until Commit.
func Create(path string) (*NewFile, error) {
	f, err := createTemp(path, newFile(0o600))
	if err != nil {
		return nil, pathError("create", path, err)
	}
	return &NewFile{f: f, path: path}, nil
}

// Write implements io.Writer.
func (n *NewFile) Write(data []byte) (int, error) {
	written, err := n.f.Write(data)
	return written, pathError("write", n.path, err)
}

// ReadAt implements io.ReaderAt.
func (n *NewFile) ReadAt(data []byte, at int64) (int, error) { return n.f.ReadAt(data, at) }

// Commit makes the content durable, renames the file to its path with mode perm, and makes the name durable.
// It follows a link at path. After an error the new file is removed, unless only the flush of the directory
// failed.
func (n *NewFile) Commit(perm os.FileMode) error {
	path, perm, err := replaced(n.path, perm)
	if err != nil {
		return errors.Join(pathError("write", n.path, err), n.Abort())
	}
	synced, moded := n.f.Sync(), n.f.Chmod(perm)
	if err := pathError("write", n.path, synced, moded, n.f.Close()); err != nil {
		return errors.Join(err, os.Remove(n.f.Name()))
	}
	if err := rename(n.f.Name(), path); err != nil {
		return errors.Join(pathError("rename to", n.path, err), os.Remove(n.f.Name()))
	}
	return pathError("flush", n.path, syncDir(filepath.Dir(path)))
}

// Abort removes the file.
func (n *NewFile) Abort() error {
	return pathError("remove", n.path, n.f.Close(), os.Remove(n.f.Name()))
}

// OS returns the real disk.
func OS() FS { return osFS{} }

type osFS struct{}

const (
	tempPrefix = ".tmp-"
	tempTries  = 100
)

// IsTemp reports whether a file name has the form used by WriteTemp. Such a file was left by a killed process
// or a power cut unless a process is about to rename it.
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

// newFile returns a function that creates a file with an unused name.
func newFile(perm fs.FileMode) func(name string) (*os.File, error) {
	return func(name string) (*os.File, error) { return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm) }
}

// createTemp never opens an existing file, so two writers can't share one.
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
	if flush == FullFlush {
		return f.Sync()
	}
	return nil
}

// Rename implements FS.
func (osFS) Rename(from, to string) error {
	return pathError("rename to", to, rename(from, to))
}

// Append implements FS.
func (osFS) Append(path string, data []byte, perm fs.FileMode, flush Flush) error {
	f, err := safeopen.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, perm, safeopen.Follow)
	if err != nil {
		return pathError("append to", path, err)
	}
	return pathError("append to", path, appendTo(f, data, flush), f.Close())
}

// Extend implements FS.
func (osFS) Extend(path string, data []byte, most int64) error {
	f, err := safeopen.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0, safeopen.NoFollow)
	if err != nil {
		return pathError("append to", path, err)
	}
	info, err := f.Stat()
	switch {
	case err == nil && info.Size()+int64(len(data)) > most:
		err = &safeopen.TooBigError{Path: path, Max: most}
	case err == nil:
		err = appendTo(f, data, NoFlush)
	}
	return pathError("append to", path, err, f.Close())
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
func (osFS) Truncate(path string, size int64) error { return os.Truncate(path, size) }

// Remove implements FS.
func (osFS) Remove(path string) error { return os.Remove(path) }

// MkdirAll implements FS.
func (osFS) MkdirAll(path string, perm fs.FileMode) error { return os.MkdirAll(path, perm) }

// Touch implements FS.
func (osFS) Touch(path string) error { return pathError("touch", path, touch(path)) }

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

type notFile struct{ *safeopen.NotFileError }

func (e notFile) Error() string { return e.Reason() }
func (e notFile) Unwrap() error { return e.NotFileError }

// pathError joins the errors, or returns nil. It reports the caller's path, because the causes contain that
// of a temporary file.
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

// Rooted returns the disk below a directory that untrusted users can also write. It changes nothing outside
// the directory and doesn't write through links.
func Rooted(dir string) FS { return &rooted{dir: dir} }

type rooted struct {
	osFS
	dir string

	mu   sync.Mutex
	root *os.Root // opened on first use
}

// open opens the directory, which must exist.
func (b *rooted) open() (_ *os.Root, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root == nil {
		b.root, err = os.OpenRoot(b.dir)
	}
	return b.root, err
}

// within calls do with the directory and a path relative to it.
func (b *rooted) within(op, path string, do func(root *os.Root, name string) error) error {
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
func (b *rooted) WriteTemp(path string, data []byte, perm fs.FileMode, flush Flush) (temp string, err error) {
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
func (b *rooted) Rename(from, to string) error {
	old, err := filepath.Rel(b.dir, from)
	if err != nil {
		return pathError("rename to", to, err)
	}
	return b.within("rename to", to, func(root *os.Root, name string) error { return root.Rename(old, name) })
}

// openFile opens a file that isn't a link, which it checks before and after opening.
func openFile(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &safeopen.NotFileError{Path: name, Mode: info.Mode().Type()}
	}
	f, err := root.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	at, lerr := root.Lstat(name)
	if err = errors.Join(err, lerr); err == nil && !os.SameFile(is, at) {
		err = &safeopen.NotFileError{Path: name, Mode: at.Mode().Type()}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Append implements FS.
func (b *rooted) Append(path string, data []byte, perm fs.FileMode, flush Flush) error {
	return b.within("append to", path, func(root *os.Root, name string) error {
		f, err := openFile(root, name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, perm)
		if err != nil {
			return err
		}
		return errors.Join(appendTo(f, data, flush), f.Close())
	})
}

// Truncate implements FS.
func (b *rooted) Truncate(path string, size int64) error {
	return b.within("truncate", path, func(root *os.Root, name string) error {
		f, err := openFile(root, name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(size), f.Close())
	})
}

// Remove implements FS.
func (b *rooted) Remove(path string) error {
	return b.within("remove", path, func(root *os.Root, name string) error { return root.Remove(name) })
}

// MkdirAll implements FS. It also creates the directory itself.
func (b *rooted) MkdirAll(path string, perm fs.FileMode) error {
	if err := b.osFS.MkdirAll(b.dir, perm); err != nil || filepath.Clean(path) == filepath.Clean(b.dir) {
		return err
	}
	return b.within("make", path, func(root *os.Root, name string) error { return root.MkdirAll(name, perm) })
}
