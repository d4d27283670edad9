// Package safeopen opens files that another program might have created: in a repository, in a run directory
// that an agent writes to, or in a shared home. Such a path can be something other than a file: opening a
// pipe can block forever, reading a device can be endless or exhaust memory, and a link can lead to a file
// that must not be shown.
//
// The package therefore opens paths without blocking, requires a regular file, and bounds reads. The caller
// decides whether the last element of a path can be a symbolic link; [OpenIn] ensures that no element leads
// out of a directory. [RemoveAll] removes such files.
package safeopen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Links determines how a symbolic link at the end of a path is handled.
type Links bool

// The values of Links.
const (
	Follow   Links = true  // follow it
	NoFollow Links = false // reject it, where only uwf should have created the file
)

// NotFileError means that a path isn't a regular file.
type NotFileError struct {
	Path string
	Mode fs.FileMode // type bits
}

func (e *NotFileError) Error() string {
	return e.Path + " " + e.Reason()
}

// Reason returns the error's text without the path.
func (e *NotFileError) Reason() string { return "is " + Kind(e.Mode) + ", not a file" }

// TooBigError means that a file exceeds the caller's limit.
type TooBigError struct {
	Path string
	Max  int64 // bytes
}

func (e *TooBigError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes", e.Path, e.Max)
}

// Open opens a regular file for reading. It never blocks. Errors: *[NotFileError], and the errors of
// [os.Open].
func Open(path string, links Links) (*os.File, error) {
	return OpenFile(path, os.O_RDONLY, 0, links)
}

// OpenMax is [Open] for a file of at most max bytes. Errors: also *[TooBigError].
func OpenMax(path string, max int64, links Links) (*os.File, error) {
	f, err := Open(path, links)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > max {
		err = &TooBigError{path, max}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// OpenFile is [Open] with the flags of [os.OpenFile]. Don't use os.O_TRUNC: a file must be checked before it
// is changed.
func OpenFile(path string, flag int, perm fs.FileMode, links Links) (*os.File, error) {
	stat := os.Lstat
	if links == Follow {
		stat = os.Stat
	}
	return open(path, flag,
		func() (fs.FileInfo, error) { return stat(path) },
		func(extra int) (*os.File, error) {
			if links == NoFollow {
				extra |= openNoFollow
			}
			return os.OpenFile(path, flag|extra, perm)
		})
}

// OpenIn is [Open] for a file in a directory. It follows links that stay inside.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(name, os.O_RDONLY,
		func() (fs.FileInfo, error) { return root.Stat(name) },
		func(extra int) (*os.File, error) { return root.OpenFile(name, os.O_RDONLY|extra, 0) })
}

// ReadFile reads a regular file of at most max bytes. Errors: *[NotFileError], *[TooBigError], and the errors
// of [os.ReadFile].
func ReadFile(path string, max int64, links Links) ([]byte, error) {
	f, err := Open(path, links)
	if err != nil {
		return nil, err
	}
	return readAll(f, path, max)
}

// ReadFileIn is [ReadFile] for a file in a directory, as [OpenIn].
func ReadFileIn(root *os.Root, name string, max int64) ([]byte, error) {
	f, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	return readAll(f, name, max)
}

// open checks the file before opening it, because opening a device can have side effects, and again
// afterwards, because it might have been replaced.
func open(path string, flag int, stat func() (fs.FileInfo, error),
	openWith func(extra int) (*os.File, error)) (*os.File, error) {
	info, err := stat()
	switch {
	case os.IsNotExist(err) && flag&os.O_CREATE != 0:
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &NotFileError{path, info.Mode().Type()}
	}
	f, err := openWith(openNonblock)
	if err != nil {
		if info, again := stat(); again == nil && !info.Mode().IsRegular() {
			return nil, &NotFileError{path, info.Mode().Type()}
		}
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &NotFileError{path, info.Mode().Type()}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// readAll reads and closes a file.
func readAll(f *os.File, path string, max int64) ([]byte, error) {
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > max {
		return nil, &TooBigError{path, max}
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(f, max+1)) // it might have grown
	if err == nil && int64(data.Len()) > max {
		err = &TooBigError{path, max}
	}
	if err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// Kind describes a file mode's type, such as "a pipe".
func Kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// accounts contains /etc/group and /etc/passwd, if readable.
type accounts struct{ groups, users string }

// writtenByOthers reports whether users other than root and uid can write a file with this mode and group. A
// group is harmless if it is root's, or the user's private one: it has the user's name or, if names are
// unavailable, number, and no other members.
func writtenByOthers(mode uint32, gid, uid int, a accounts) bool {
	const group, all = 0o020, 0o002
	switch {
	case mode&all != 0:
		return true
	case mode&group == 0:
		return false
	}
	me, known := "", false
	for fields := range records(a.users, 4) { // name:password:uid:gid
		switch {
		case fields[2] == strconv.Itoa(uid):
			me, known = fields[0], true
		case fields[2] != "0" && fields[3] == strconv.Itoa(gid):
			return true
		}
	}
	for fields := range records(a.groups, 4) { // name:password:gid:members
		if fields[2] != strconv.Itoa(gid) {
			continue
		}
		others := func(name string) bool { return name != "" && name != "root" && name != me }
		if slices.ContainsFunc(strings.Split(fields[3], ","), others) {
			return true
		}
		if known && gid != 0 {
			return fields[0] != me
		}
	}
	return gid != 0 && gid != uid
}

// records yields the fields of each line of an accounts file.
func records(text string, least int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			fields := strings.Split(strings.TrimSpace(line), ":")
			if len(fields) >= least && !strings.HasPrefix(line, "#") && !yield(fields) {
				return
			}
		}
	}
}

// Resolved returns path with symbolic links resolved, or path itself if that fails.
func Resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// RemoveAll removes a directory with everything in it, even if a program has taken permissions from its directories. The
// user must own its parent.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, closed := os.OpenRoot(filepath.Dir(dir))
	if closed != nil {
		return err
	}
	return errors.Join(RemoveAllIn(root, filepath.Base(dir)), root.Close())
}

// RemoveAllIn is [RemoveAll] for an entry of a directory.
func RemoveAllIn(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if info, lost := root.Lstat(name); !errors.Is(err, fs.ErrPermission) || lost != nil || !info.IsDir() {
		return err // a link leads to directories that must stay
	}
	unlock(root, name)
	return root.RemoveAll(name)
}

// unlock opens a directory and those below it to the user. The removal reports a failure.
func unlock(root *os.Root, name string) {
	_ = root.Chmod(name, 0o700)
	dir, err := root.OpenRoot(name) // a long path takes long, and [fs.FS] finds only names in UTF-8
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := fs.ReadDir(dir.FS(), ".")
	for _, e := range entries {
		if e.IsDir() {
			unlock(dir, e.Name())
		}
	}
}
