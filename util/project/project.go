// Package project decides which files of a project to trust: files that another user has placed near a
// directory must not determine what is run there, nor what a model reads.
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

// Search describes where to search for the files of a project, and whose files count.
type Search struct {
	Dir  string // absolute, without symbolic links, so that its prefixes are its parents
	Home string // the user's home directory; "" if unknown
	// Owner returns the owner of a file. If it is nil, or ok is false, every file counts.
	Owner func(fs.FileInfo) (id int, ok bool)
	Users []int // whose files count
	// Shared reports whether other users can write a file or folder, which then doesn't count. If it is nil,
	// every file counts.
	Shared func(path string, info fs.FileInfo) bool
}

// From returns the default search from a directory: the files of this user and of the system count and, under
// sudo, those of the invoking user.
func From(e env.Env, dir string) Search {
	const system = 0
	me := os.Geteuid()
	s := Search{Dir: safeopen.Resolved(dir), Home: home.User(e), Owner: safeopen.Owner, Users: []int{system, me},
		Shared: func(path string, info fs.FileInfo) bool {
			return safeopen.OthersWrite(info) && safeopen.Reachable(path)
		}}
	if id, err := strconv.Atoi(e.Get("SUDO_UID")); err == nil && me == system {
		s.Users = append(s.Users, id)
	}
	return s
}

// Dirs returns the directories to search, nearest first, and the root of the repository if that is the last
// of them. The search continues in the parent unless
//
//   - the directory is the root of the repository: it has a .git (a directory, or
//     the file of a work tree);
//   - the directory is the user's home directory, or the parent is: files there count
//     only when working directly in it;
//   - the parent has a different owner than the directory.
func (s Search) Dirs() (dirs []string, repository string, err error) {
	if !filepath.IsAbs(s.Dir) {
		return nil, "", fmt.Errorf("%s is not absolute", s.Dir)
	}
	home, _ := os.Stat(s.Home) // without one, nothing equals it
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

// counts reports whether a file's owner is trusted.
func (s Search) counts(info fs.FileInfo) bool {
	if s.Owner == nil {
		return true
	}
	id, known := s.Owner(info)
	return !known || slices.Contains(s.Users, id)
}

// Root returns the directory that links in Dir's files can't leave: the root of the repository, or Dir itself
// if the search finds none.
func (s Search) Root() (string, error) {
	_, repository, err := s.Dirs()
	if err != nil {
		return "", fmt.Errorf("find the root of a project: %w", err)
	}
	return cmp.Or(repository, filepath.Clean(s.Dir)), nil
}

// Ignored is a file or folder that doesn't count, and the reason.
type Ignored struct{ Path, Reason string }

// Files accesses the files in a directory without following links out of it. Close it after use.
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

// Look returns information about a file, following links. It returns nil if the file doesn't exist or is
// ignored.
func (f *Files) Look(name string) (fs.FileInfo, error) {
	info, err := f.Stat(name)
	switch {
	case IsAbsent(err):
		return nil, nil // including a broken link
	case err != nil:
		if link, again := f.Lstat(name); again != nil || link.Mode()&fs.ModeSymlink == 0 || errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if errors.Is(err, syscall.ELOOP) {
			f.Ignore(name, "is a symbolic link in a loop")
			return nil, nil
		}
		f.Ignore(name, "is a symbolic link out of the project")
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
		f.Ignore(name, fmt.Sprintf("is writable by other users (mode %04o; chmod go-w)", info.Mode().Perm()))
		return false
	}
	return true
}

// Begin reads the beginning of a file, at most the given number of bytes, and returns its size. ok is false
// if the file doesn't exist or is ignored.
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
		return nil, 0, false, err // it might have been replaced
	}
	text, err = io.ReadAll(io.LimitReader(file, most))
	return text, max(info.Size(), int64(len(text))), err == nil, err
}

// Ignore records a file that doesn't count.
func (f *Files) Ignore(name, why string) {
	f.Ignored = append(f.Ignored, Ignored{filepath.Join(f.Name(), name), why})
}

// IsAbsent reports whether an error means that a file doesn't exist.
func IsAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// File finds a file of the project by its path relative to a directory: the nearest one. Links out of that
// directory aren't followed. path is "" if there is none; ignored lists files and directories that don't
// count.
func (s Search) File(name string) (path string, ignored []Ignored, err error) {
	if !filepath.IsAbs(s.Dir) {
		return "", nil, nil // a thread of the original without a directory isn't in a project
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
		return false, nil, nil // or access is denied
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
