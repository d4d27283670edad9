// Package safeopen opens files that another program may have put there: those of
// a repository, of a run directory that an agent writes to, of a home that many
// processes share. What lies at such a path need not be a file. Opening a pipe
// waits for ever, reading a device may never end or eat all memory, and a link
// leads to a file that nobody meant to show.
//
// So a path is opened without waiting, what is opened must be a regular file, and
// what is read at once has a bound. Whether a symbolic link may stand at the end
// of the path is the caller's to say; that no part of the path leads out of a
// directory is what [OpenIn] is for.
package safeopen

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Links says what a symbolic link at the end of a path means.
type Links bool

// The two answers.
const (
	Follow   Links = true  // it stands for what it leads to
	NoFollow Links = false // it is refused: nobody but us should have put the file there
)

// NotFileError says that a path leads to something else than a regular file.
type NotFileError struct {
	Path string
	Mode fs.FileMode // its type bits
}

func (e *NotFileError) Error() string {
	return e.Path + " " + e.Reason()
}

// Reason is the error's text without the path.
func (e *NotFileError) Reason() string { return "is not a file but " + Kind(e.Mode) }

// TooBigError says that a file is larger than the caller's bound.
type TooBigError struct {
	Path string
	Max  int64 // bytes
}

func (e *TooBigError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes", e.Path, e.Max)
}

// Open opens a regular file for reading. It never waits. Errors: *[NotFileError],
// and those of [os.Open].
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

// OpenFile is [Open] with the flags of [os.OpenFile]. os.O_TRUNC is not for it: a
// file must be judged before it is changed.
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

// OpenIn is [Open] for a file within a directory. Links are followed as far as
// they stay inside.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(name, os.O_RDONLY,
		func() (fs.FileInfo, error) { return root.Stat(name) },
		func(extra int) (*os.File, error) { return root.OpenFile(name, os.O_RDONLY|extra, 0) })
}

// ReadFile reads a regular file of at most max bytes. Errors: *[NotFileError],
// *[TooBigError], and those of [os.ReadFile].
func ReadFile(path string, max int64, links Links) ([]byte, error) {
	f, err := Open(path, links)
	if err != nil {
		return nil, err
	}
	return readAll(f, path, max)
}

// ReadFileIn is [ReadFile] for a file within a directory, as [OpenIn].
func ReadFileIn(root *os.Root, name string, max int64) ([]byte, error) {
	f, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	return readAll(f, name, max)
}

// open looks at what is there before it opens it, because opening a device may
// do something; and again afterwards, because it may be another one by then.
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
	_, err = data.ReadFrom(io.LimitReader(f, max+1)) // it may have grown
	if err == nil && int64(data.Len()) > max {
		err = &TooBigError{path, max}
	}
	if err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// Kind says what a file with this mode is, as "a pipe".
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

// accounts are /etc/group and /etc/passwd, as far as they can be read.
type accounts struct{ groups, users string }

// writtenByOthers reports whether others than root and a user may write a file of
// this mode and group. A group is none of others if it is that user's private one: with
// the user's name, or where names are not available, number; root's; and if nobody else is in it.
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

// records yields the lines of a file of accounts, as fields.
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
