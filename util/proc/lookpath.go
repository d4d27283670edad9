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
	"github.com/united-workforce/uwf/util/safeopen"
)

// InsideError means that a program was found only in the work area, where whoever works there, such as a
// model, could have created it.
type InsideError struct {
	Path string // of the program
	Dir  string // work area that contains it
}

func (e *InsideError) Error() string {
	return fmt.Sprintf("%s is in the workspace %s, whose programs need a path", e.Path, e.Dir)
}

// Beside finds a program of uwf: in the directory of the program exe, or as [LookPath] does.
func Beside(exe, name, dir string, environ []string) (string, error) {
	if exe != "" {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(exe), name)); err == nil {
			return path, nil
		}
	}
	return LookPath(name, dir, environ)
}

// LookPath finds the file of a command. It looks up a bare name in the PATH of environ, which can differ from
// this process's. Other relative paths are relative to dir. It skips relative entries of PATH, which would
// depend on the child's working directory, and everything in dir, in the repository that contains it, and in
// the repository's other work trees, even through a link; see [OwnPath]. Errors: [exec.ErrNotFound] for an
// unknown name, [*InsideError], [fs.ErrNotExist], [fs.ErrPermission].
func LookPath(command, dir string, environ []string) (string, error) {
	if command == "" {
		return "", errors.New("the command is empty")
	}
	if filepath.Base(command) != command {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return exec.LookPath(path) // adds the extension on Windows
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

// OwnPath returns environ with a PATH that contains only the user's own directories: without relative and
// empty ones, and without those in dir, in the repository that contains it, and in the repository's other
// work trees. If the work area includes the user's home directory, excluding it wouldn't help: everything
// that the user starts is there.
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

// workAround returns the directories of the work area of dir: its work tree, or dir itself, and the
// repository's other work trees, because changes propagate between them. It excludes directories that contain
// the user's home directory.
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
	for at := dir; !holdsHome(at); at = filepath.Dir(at) { // a submodule is inside another work tree
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

// real returns a path without links, as far as it exists.
func real(path string) string {
	return filepath.Clean(safeopen.Resolved(path))
}

// inside reports whether a path is in a directory that contains no links.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, real(path))
	return err == nil && filepath.IsLocal(rel)
}

// lastValue returns the value of a variable; the last one of a key applies.
func lastValue(environ []string, is func(key string) bool) string {
	for _, e := range slices.Backward(environ) {
		if key, value, ok := strings.Cut(e, "="); ok && is(key) {
			return value
		}
	}
	return ""
}
