package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/gitdir"
)

// InsideError says that a program was found only where work is done: whoever
// works there, such as a model, could have put it there to be started.
type InsideError struct {
	Path string // of the program
	Dir  string // the directory that holds it
}

func (e *InsideError) Error() string {
	return fmt.Sprintf("%s lies in the workspace %s, which provides no programs: name it by its path", e.Path, e.Dir)
}

// Beside finds a program of ours: in the directory of the program exe, else as [LookPath] does.
func Beside(exe, name, dir string, environ []string) (string, error) {
	if exe != "" {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(exe), name)); err == nil {
			return path, nil
		}
	}
	return LookPath(name, dir, environ)
}

// LookPath finds the file of a command. A bare name is looked up on the PATH of
// environ, which is not always this process's; another path that is not absolute
// begins at dir. Relative entries of PATH are passed over: they would depend on
// the directory that the child happens to work in. So is what is in dir or in
// the repository around it, in whichever of its work trees, also by a link: see
// [OwnPath]. Errors:
// [exec.ErrNotFound] for a name that is nowhere, [*InsideError],
// [fs.ErrNotExist], [fs.ErrPermission].
func LookPath(command, dir string, environ []string) (string, error) {
	if command == "" {
		return "", errors.New("the command is empty")
	}
	if filepath.Base(command) != command {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return exec.LookPath(path) // on Windows it adds the extension
	}
	work := workAround(dir, environ)
	var denied error
	for _, entry := range filepath.SplitList(lastValue(environ, isPathKey)) {
		if !filepath.IsAbs(entry) {
			continue
		}
		path, err := exec.LookPath(filepath.Join(entry, command))
		i := slices.IndexFunc(work, func(w string) bool { return inside(w, entry) || inside(w, path) })
		if err == nil && i >= 0 {
			err = &InsideError{path, work[i]}
			if denied == nil {
				denied = err
			}
		}
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", exec.ErrNotFound
}

// OwnPath returns environ with a PATH that has only the user's own directories:
// without relative and empty ones, and without those that lie in dir or in the
// repository around it, in whichever of its work trees. Where the user's home directory is all of the work, or
// more than that, nothing is gained: everything that the user starts lies there.
func OwnPath(environ []string, dir string) []string {
	work := workAround(dir, environ)
	env := slices.Clone(environ)
	for i, kv := range env {
		key, list, ok := strings.Cut(kv, "=")
		if !ok || !isPathKey(key) {
			continue
		}
		own := slices.DeleteFunc(filepath.SplitList(list), func(entry string) bool {
			return !filepath.IsAbs(entry) || slices.ContainsFunc(work, func(w string) bool { return inside(w, entry) })
		})
		env[i] = key + "=" + strings.Join(own, string(filepath.ListSeparator))
	}
	return env
}

// workAround are the directories that hold the work that is done in dir: the work tree
// that it is part of, or itself, and the other work trees of the repository, since what
// is done in one comes to the others. None is the user's home or holds it.
func workAround(dir string, environ []string) []string {
	if dir == "" {
		return nil
	}
	dir = real(dir)
	home := lastValue(environ, func(key string) bool { return key == homeVar })
	if home != "" {
		home = real(home)
	}
	holdsHome := func(dir string) bool {
		return filepath.Dir(dir) == dir || home != "" && inside(dir, home)
	}
	if holdsHome(dir) {
		return nil
	}
	var work []string
	for at := dir; !holdsHome(at); at = filepath.Dir(at) { // a submodule is in another one
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			work = append(work, at)
			work = append(work, slices.DeleteFunc(gitdir.Others(at), holdsHome)...)
		}
	}
	if work == nil {
		return []string{dir}
	}
	return work
}

// real is a path without links, as far as it can be known.
func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return filepath.Clean(path)
}

// inside reports whether a path leads into a directory that is free of links.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, real(path))
	return err == nil && filepath.IsLocal(rel)
}

// lastValue is the value of a variable; the last one of a key wins.
func lastValue(environ []string, is func(key string) bool) string {
	for _, e := range slices.Backward(environ) {
		if key, value, ok := strings.Cut(e, "="); ok && is(key) {
			return value
		}
	}
	return ""
}
