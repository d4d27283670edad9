// Package offlimits owns the list of what a model must not touch, for the tools
// that work on files and for commands alike.
//
//   - Hidden places can be neither read nor written: the home of uwf, with its keys,
//     locks and sessions, and what is hidden in the user's home, except for a list
//     of names that programs need (places.go).
//   - Where the workspace holds the home, names of that list, and what is in the
//     PATH there, can be read and not be written.
//   - Names that stand for code of the user's, in a workspace: .git, .workflow*
//     and .uwf. The file tools do not write there (names.go), nor do they make a
//     directory that git takes for a repository, nor write what git's
//     settings point at (pointed.go). For commands package box has them.
//
// What the user allows by name in the config wins.
package offlimits

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
)

// List is what is off limits in one workspace. The zero value knows the names
// only, and no places.
type List struct {
	hidden   []string // absolute and without links, as all paths here
	readable []string
	writable []string
	guards   []string // what may be read and not be written
	user     string   // the home directory, if the workspace holds it: file tools write nothing hidden in it
	home     string   // the user's own directory, with git's settings; "": there is none
}

// Hidden are the places that cannot be read, such as confine.Rules wants them.
func (l List) Hidden() []string { return l.hidden }

// Inside are the hidden places in a directory without links, by their paths from it, with slashes.
func (l List) Inside(dir string) (inside []string) {
	for _, path := range l.hidden {
		if rel, err := filepath.Rel(dir, path); err == nil && within(dir, path) && rel != "." {
			inside = append(inside, filepath.ToSlash(rel))
		}
	}
	return inside
}

// Narrows says what hidden places in a directory keep from who is confined to it; "": there are none.
func (l List) Narrows(dir string) string {
	inside := l.Inside(dir)
	if len(inside) == 0 {
		return ""
	}
	return fmt.Sprintf("%s holds %s, which is off limits: what is confined cannot make new files directly beside it "+
		"or above", dir, plaintext.Names(inside, 5))
}

// Closed are the places that cannot be read, with none that lie in them and can: for who
// can only forbid.
func (l List) Closed() (closed []string) {
	var add func(path string)
	add = func(path string) {
		open := append(slices.Clone(l.readable), l.writable...)
		if !slices.ContainsFunc(open, func(o string) bool { return within(path, o) }) {
			closed = append(closed, path)
			return
		}
		entries, _ := os.ReadDir(path) // what cannot be listed is closed anyway
		for _, entry := range entries {
			if below := filepath.Join(path, entry.Name()); !covered(open, below) && len(closed) < maxClosed {
				add(below)
			}
		}
	}
	for _, path := range l.hidden {
		if !covered(l.writable, path) {
			add(path)
		}
	}
	return closed
}

// maxClosed bounds how many places are named, each on a command line.
const maxClosed = 2000

// Readable are exceptions from Hidden.
func (l List) Readable() []string { return l.readable }

// Guarded are the places that can be read and not be written.
func (l List) Guarded() []string { return l.guards }

// Writable are exceptions from all that is off limits.
func (l List) Writable() []string { return l.writable }

// Read returns an error for a path below a workspace that must not be read. Both
// are absolute and without links. A hidden place that the workspace is in was
// chosen on purpose.
func (l List) Read(workspace, path string) error {
	for _, h := range l.hidden {
		if within(h, path) && !within(h, workspace) && !covered(l.readable, path) && !covered(l.writable, path) {
			return fmt.Errorf("%s is off limits: programs keep their keys and settings there. Go on without it (a person can allow it: sandbox.allowRead in config.yaml)", h)
		}
	}
	return nil
}

// Write returns an error for a path below a workspace that must not be written.
func (l List) Write(workspace, path string) error {
	if err := l.Read(workspace, path); err != nil {
		return err
	}
	if err := cmp.Or(l.dotted(path), l.guarded(path)); err != nil {
		return err
	}
	rel, err := filepath.Rel(workspace, path)
	if err != nil {
		return err
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i := range parts {
		why := reservedPath(parts[:i+1])
		if why == "" {
			continue
		}
		at := filepath.Join(workspace, filepath.Join(parts[:i+1]...))
		if l.lifted(at, path) {
			return nil
		}
		return refused(rel, why)
	}
	if rel == "." {
		return nil
	}
	if err := l.gitDirectory(workspace, rel, parts); err != nil {
		return err
	}
	return l.pointedAt(workspace, rel)
}

func refused(name, why string) error {
	return fmt.Errorf("%s is off limits: %s. Leave it as it is, and say in your answer what should be changed", name, why)
}

// lifted reports whether the user has allowed a path by a name that is a guarded
// one or is in it.
func (l List) lifted(guarded, path string) bool {
	return slices.ContainsFunc(l.writable, func(w string) bool { return within(guarded, w) && within(w, path) })
}

// within reports whether a path is a directory or lies below it.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

func covered(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(d, path) })
}
