// Package project says which files of a project count: what somebody else has put
// near a directory must not choose what is run there, nor what a model is told.
package project

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Search says where the files of a project are looked for, and whose files count.
type Search struct {
	Dir  string // absolute, without symbolic links: its parents are the beginnings of its path
	Home string // the user's own directory; "": unknown
	// Owner tells to whom a file belongs; nil, or not ok: nobody can tell, and every
	// file counts.
	Owner func(fs.FileInfo) (id int, ok bool)
	Users []int // whose files count
	// Shared reports whether others may write a file or folder, which then does not
	// count; nil: nobody can tell.
	Shared func(path string, info fs.FileInfo) bool
}

// From is the search from a directory, as a user's program makes it: this user's files
// count, the system's, and under sudo those of whoever typed it.
func From(e env.Env, dir string) Search {
	const system = 0
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	me := os.Geteuid()
	s := Search{Dir: dir, Home: home.User(e), Owner: safeopen.Owner, Users: []int{system, me},
		Shared: func(path string, info fs.FileInfo) bool {
			return safeopen.OthersWrite(info) && safeopen.Reachable(path)
		}}
	if id, err := strconv.Atoi(e.Get("SUDO_UID")); err == nil && me == system {
		s.Users = append(s.Users, id)
	}
	return s
}

// Dirs are the directories that are looked at, the nearest first, and the root of
// the repository if that is the last of them. The search goes on to a parent unless
//
//   - the directory is the root of the repository: it has a .git (a directory, or
//     the file of a work tree);
//   - the directory is the user's own, or the parent is: what is there counts only
//     for whoever works right there;
//   - the parent belongs to somebody else than the directory.
func (s Search) Dirs() (dirs []string, repository string, err error) {
	if !filepath.IsAbs(s.Dir) {
		return nil, "", fmt.Errorf("%s is not absolute", s.Dir)
	}
	home, _ := os.Stat(s.Home) // without one nothing is the same
	for dir := filepath.Clean(s.Dir); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil && !IsAbsent(err) {
			return nil, "", err
		}
		dirs = append(dirs, dir)
		switch _, err := os.Lstat(filepath.Join(dir, ".git")); {
		case err == nil:
			return dirs, dir, nil
		case !IsAbsent(err):
			return nil, "", err
		}
		above, err := os.Stat(filepath.Dir(dir))
		if err != nil && !IsAbsent(err) {
			return nil, "", err
		}
		if filepath.Dir(dir) == dir || isSame(info, home) || isSame(above, home) || !s.sameOwner(info, above) {
			return dirs, "", nil
		}
	}
}

func isSame(a, b fs.FileInfo) bool { return a != nil && b != nil && os.SameFile(a, b) }

func (s Search) sameOwner(a, b fs.FileInfo) bool {
	if s.Owner == nil || a == nil || b == nil {
		return true
	}
	x, known := s.Owner(a)
	y, both := s.Owner(b)
	return !known || !both || x == y
}

// counts reports whether a file belongs to somebody whose files count.
func (s Search) counts(info fs.FileInfo) bool {
	if s.Owner == nil {
		return true
	}
	id, known := s.Owner(info)
	return !known || slices.Contains(s.Users, id)
}

// Root is the directory that nothing in the files of Dir leads out of: the root of the
// repository, or Dir itself if the search meets none.
func (s Search) Root() (string, error) {
	_, repository, err := s.Dirs()
	if err != nil {
		return "", fmt.Errorf("find the root of a project: %w", err)
	}
	return cmp.Or(repository, filepath.Clean(s.Dir)), nil
}

// Ignored is a file or folder that would count, and why it does not.
type Ignored struct{ Path, Why string }

// Files are those of a directory, out of which no link leads. To be closed.
type Files struct {
	*os.Root
	Ignored []Ignored

	search Search
}

// Open opens a directory.
func (s Search) Open(dir string) (*Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Files{Root: root, search: s}, nil
}

// Look looks at a file: a link is what it leads to. It returns nil for what is not
// there or is ignored.
func (f *Files) Look(name string) (fs.FileInfo, error) {
	info, err := f.Stat(name)
	switch {
	case IsAbsent(err):
		return nil, nil // also a link that leads nowhere
	case err != nil:
		if link, again := f.Lstat(name); again != nil || link.Mode()&fs.ModeSymlink == 0 || errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if errors.Is(err, syscall.ELOOP) {
			f.Ignore(name, "is a link that leads round in a circle")
			return nil, nil
		}
		f.Ignore(name, "is a link that leads out of the project")
		return nil, nil
	case !f.mayCount(name, info):
		return nil, nil
	}
	return info, nil
}

func (f *Files) mayCount(name string, info fs.FileInfo) bool {
	switch {
	case !f.search.counts(info):
		f.Ignore(name, "belongs to another user")
		return false
	case f.search.Shared != nil && f.search.Shared(filepath.Join(f.Name(), name), info):
		f.Ignore(name, fmt.Sprintf("can be changed by others (mode %04o; chmod go-w)", info.Mode().Perm()))
		return false
	}
	return true
}

// Begin reads a file, at most so many bytes of it, and tells how large it is. ok is
// false for what is not there or is ignored.
func (f *Files) Begin(name string, most int64) (text []byte, size int64, ok bool, err error) {
	info, err := f.Look(name)
	if err != nil || info == nil {
		return nil, 0, false, err
	}
	file, err := safeopen.OpenIn(f.Root, name)
	if other, ok := errors.AsType[*safeopen.NotFileError](err); ok {
		f.Ignore(name, other.Reason())
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, err
	}
	defer func() { _ = file.Close() }() // opened for reading only
	if info, err = file.Stat(); err != nil || !f.mayCount(name, info) {
		return nil, 0, false, err // it may be another file by now
	}
	text, err = io.ReadAll(io.LimitReader(file, most))
	return text, max(info.Size(), int64(len(text))), err == nil, err
}

// Ignore notes a file that does not count.
func (f *Files) Ignore(name, why string) {
	f.Ignored = append(f.Ignored, Ignored{filepath.Join(f.Name(), name), why})
}

// IsAbsent reports that an error says that there is no such file.
func IsAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

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
