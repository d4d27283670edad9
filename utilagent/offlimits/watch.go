package offlimits

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of the search for repositories within a workspace.
const (
	maxRepositoryDepth = 3
	maxRepositoryDirs  = 2000
)

// Watched is what commands could change in some directories, as it was.
type Watched struct {
	list  List
	trees []tree
}

// tree is a directory with the names in it that are watched.
type tree struct {
	dir   string
	space bool             // a workspace, in which reserved names are watched
	names map[string]*node // by slash-separated path; nil: it was not there
	scope map[string]scope
}

// Watch remembers what of a workspace, and of directories of repositories beside
// it, commands must not change. inner are the repositories within the workspace,
// as [Repositories] finds them.
func Watch(l List, workspace string, inner, beside []string) (*Watched, error) {
	w := &Watched{list: l}
	names := map[string]scope{".git": repository}
	for _, name := range inner {
		names[name] = repository
	}
	errs := []error{w.add(workspace, true, names)}
	for _, dir := range beside {
		errs = append(errs, w.add(filepath.Dir(dir), false, map[string]scope{filepath.Base(dir): repository}))
	}
	return w, errors.Join(errs...)
}

// add remembers names of a directory.
func (w *Watched) add(dir string, space bool, names map[string]scope) (err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	t := tree{dir: dir, space: space, names: map[string]*node{}, scope: names}
	w.addReserved(root, t, names)
	m := &memory{root: root}
	for name, s := range names {
		t.names[name] = m.node(name, s, 0)
	}
	w.trees = append(w.trees, t)
	return nil
}

// Repositories finds what is named .git within a workspace, not too deep. Looking
// costs time; what a command makes itself is its own affair.
func Repositories(workspace string) []string {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil // a command will say what is wrong
	}
	defer root.Close() // only read from
	var names []string
	looked := 0
	var find func(at string, depth int)
	find = func(at string, depth int) {
		if looked++; looked > maxRepositoryDirs {
			return
		}
		entries, err := fs.ReadDir(root.FS(), at)
		if err != nil {
			return // nor can a command that is confined
		}
		for _, e := range entries {
			name := path.Join(at, e.Name())
			switch {
			case e.Name() == ".git":
				names = append(names, name)
			case e.IsDir() && depth < maxRepositoryDepth && e.Name() != "node_modules":
				find(name, depth+1)
			}
		}
	}
	find(".", 0)
	return names
}

// addReserved adds the entries of a workspace with reserved names, but for what is
// hidden: uwf itself writes there meanwhile.
func (w *Watched) addReserved(root *os.Root, t tree, names map[string]scope) {
	if !t.space {
		return
	}
	_ = list(root, ".", func(entry string) error {
		switch p := plain(entry); {
		case isGit(p) || reserved(entry) == "" || slices.Contains(w.list.hidden, filepath.Join(t.dir, entry)):
		case p == ".uwf":
			names[entry] = uwfHome
		default:
			names[entry] = everything
		}
		return nil
	})
}

// Restore puts back what has changed, and returns the paths that were changed.
// Settings of git that start nothing may change.
func (w *Watched) Restore() (changed []string, err error) {
	var errs []error
	for _, t := range w.trees {
		more, err := w.restore(t)
		changed, errs = append(changed, more...), append(errs, err)
	}
	slices.Sort(changed)
	return slices.Compact(changed), errors.Join(errs...)
}

func (w *Watched) restore(t tree) (changed []string, err error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, fmt.Errorf("look at %s again: %w", t.dir, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	k := &keeper{root: root, allowed: func(name string) bool { return w.allowed(filepath.Join(t.dir, filepath.FromSlash(name))) }}
	names := maps.Clone(t.scope)
	w.addReserved(root, t, names)
	var errs []error
	for name, s := range names {
		// A directory on the way that has become a link leads elsewhere.
		if dir := path.Dir(name); dir != "." && !isPlainDir(root, dir) {
			continue
		}
		was := t.names[name]
		switch {
		case was != nil:
			errs = append(errs, k.fix(name, was))
		case k.allowed(name):
		default:
			errs = append(errs, k.fresh(name, s))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return k.changed, fmt.Errorf("put back in %s: %w", t.dir, err)
	}
	return k.changed, nil
}

// allowed tells whether the user has allowed a path by name: not only a directory
// above, which says nothing about what is reserved in it.
func (w *Watched) allowed(path string) bool {
	return slices.ContainsFunc(w.list.writable, func(dir string) bool {
		return within(dir, path) && slices.ContainsFunc(strings.Split(dir, string(filepath.Separator)), func(part string) bool { return reserved(part) != "" })
	})
}

// isPlainDir tells whether each part of a path is a directory, not a link to one.
func isPlainDir(root *os.Root, name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if info, err := root.Lstat(at); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}
