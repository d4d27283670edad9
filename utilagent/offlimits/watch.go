package offlimits

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Place is what commands can write to, as far as repositories may lie there.
// Paths are absolute and without links.
type Place struct {
	Workspace string
	Beside    []string // git directories elsewhere
	Writable  []string // more directories
	// Outside are those of Writable that nobody has allowed by name, such as caches:
	// their top is looked through for repositories, and no link may lead from the
	// workspace there. Into Temporary no link may lead, either; it goes with the run.
	Outside, Temporary []string
	// Dirs is what [Watched.Dirs] said after the last command here: what was looked at
	// once is looked at again, however many directories a command has made. 0: none was.
	Dirs int
	// Now is when the command begins: in places too deep to be looked at before, what
	// has changed later is judged as new. Zero: nothing is judged there.
	Now time.Time
	// Obeyed are names in directories of a program's own that say what it runs.
	Obeyed map[string][]string
}

// Watched is what commands could change in some directories, as it was.
type Watched struct {
	list  List
	place Place
	trees []*tree
	dirs  int

	saved  string // a file; see Keep
	held   *durable.Held
	guard  string // a directory; see Keep
	before earlier
}

// tree is a directory with the names in it that are watched.
type tree struct {
	dir     string
	space   bool             // it is looked through
	outside bool             // of the workspace
	names   map[string]*node // by slash-separated path; nil: it was not there
	scope   map[string]scope
	pointed []string // of names, those that git's settings name
	seen    view
	known   map[string]bool // hooks and configs that were there
	passed  map[passedID]bool
}

// Watch remembers what commands must not change in a place.
func Watch(l List, p Place) (*Watched, error) {
	w := &Watched{list: l, place: p}
	return w, w.remember()
}

func (w *Watched) remember() error {
	p := w.place
	errs := []error{w.add(p.Workspace, true, map[string]scope{".git": repository})}
	for _, dir := range p.Outside {
		errs = append(errs, w.add(dir, true, map[string]scope{".git": repository}))
	}
	for _, dir := range p.Beside {
		errs = append(errs, w.add(filepath.Dir(dir), false, map[string]scope{filepath.Base(dir): repository}))
	}
	for dir, names := range p.Obeyed {
		scopes := map[string]scope{}
		for _, name := range names {
			scopes[name] = everything
			if path.Base(name) == ".claude.json" {
				scopes[name] = notes
			}
		}
		errs = append(errs, w.add(dir, false, scopes))
	}
	return errors.Join(errs...)
}

// Unseen says what of the workspace was too much to be looked at; "": nothing.
func (w *Watched) Unseen() string {
	for _, t := range w.trees {
		if t.dir == w.place.Workspace && !t.seen.all() {
			return fmt.Sprintf("%s has more directories than the %d that are looked at (or some that cannot be read): in the others only what is new is judged, and submodules are watched; most are in %s", t.dir, min(t.seen.dirs, t.seen.most), told(t.seen.crowded(t.dir)))
		}
	}
	return ""
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
	t := &tree{dir: dir, space: space, outside: slices.Contains(w.place.Outside, dir), names: map[string]*node{}, scope: names, known: map[string]bool{}}
	if space {
		t.seen = w.list.look(dir, max(t.most(), w.place.Dirs), nil)
		maps.Copy(names, t.seen.names)
	}
	if space && !t.outside {
		if !t.seen.all() {
			for _, name := range gitlinks(dir, ".", 0) {
				names[path.Join(name, ".git")] = repository
			}
		}
		w.addPointed(root, t)
	}
	m := &memory{root: root, known: t.known}
	for _, name := range slices.SortedFunc(maps.Keys(names), nearer) {
		s := names[name]
		was, known, ok := w.before.node(filepath.Join(dir, filepath.FromSlash(name)))
		if ok {
			maps.Copy(t.known, known)
		} else {
			was = m.top(name, s)
		}
		t.names[name] = was
	}
	t.passed = passing(root, names, nil).ids
	w.trees = append(w.trees, t)
	return nil
}

// nearer sorts names near the top first: there is what the user has, if others made too much to be read.
func nearer(a, b string) int {
	return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
}

// addPointed adds what git's settings name, of all repositories that were found.
func (w *Watched) addPointed(root *os.Root, t *tree) {
	found := w.list.pointersAbove(t.dir)
	for name, s := range t.seen.names {
		at := filepath.Join(t.dir, filepath.FromSlash(name))
		switch {
		case s != repository:
		case isGit(plain(path.Base(name))):
			found = append(found, pointersOf(w.list.home, filepath.Dir(at))...)
		default:
			found = append(found, pointersOfBare(w.list.home, at)...)
		}
	}
	for _, p := range found {
		for _, at := range p.places(t.dir) {
			name := firstLink(root, at)
			if _, ok := t.scope[name]; !ok {
				t.scope[name] = everything
				t.pointed = append(t.pointed, name)
			}
		}
	}
}

// firstLink is the part of a path up to the first link on the way, or all of it.
func firstLink(root *os.Root, name string) string {
	for i, c := range name {
		if c == '/' {
			if info, err := root.Lstat(name[:i]); err == nil && !info.IsDir() {
				return name[:i]
			}
		}
	}
	return name
}

// Changes are the paths that a command should have left alone.
type Changes struct {
	Undone []string
	// Lost are those that are gone and cannot be put back: a repository without
	// its objects would be none.
	Lost []string
	// Hiding is what git was told to pass over: a person who looks at a diff does not see
	// it. It is not undone, since a sparse checkout is nothing else.
	Hiding []string
	// Unseen are directories in which a command has made more than is looked at. Then
	// Restore is to be called again, by this process after its next command or by
	// [Recover], until they are gone.
	Unseen []string
}

// String says what a command has changed, after its name; "": nothing.
func (c Changes) String() string {
	var parts []string
	if len(c.Undone) > 0 {
		parts = append(parts, "changed what is off limits, and was undone: "+told(c.Undone))
	}
	if len(c.Lost) > 0 {
		parts = append(parts, "removed or moved what cannot be put back: "+told(c.Lost))
	}
	if len(c.Hiding) > 0 {
		parts = append(parts, "made git pass over what you may want to see in git status and git diff, or take it from elsewhere: "+told(c.Hiding)+" (git update-index --no-assume-unchanged, --no-skip-worktree or git replace -d ends that)")
	}
	if len(c.Unseen) > 0 {
		parts = append(parts, fmt.Sprintf("made more than %d directories, or some that cannot be read: what starts programs there is not undone before they are removed: %s", maxNewDirs, told(c.Unseen)))
	}
	return strings.Join(parts, "; it ")
}

func told(names []string) string { return plaintext.Names(names, maxSaid) }

// Dirs is how many directories of the workspace were looked at, for the next Watch; 0:
// there were too many from the beginning.
func (w *Watched) Dirs() int { return w.dirs }

// Restore puts back what has changed. Settings of git that start nothing may change.
func (w *Watched) Restore() (Changes, error) {
	var all Changes
	var errs []error
	if w.guard != "" {
		unlock, err := lockGuard(w.guard)
		if err == nil {
			defer unlock()
		}
		errs = append(errs, err)
	}
	for _, t := range w.trees {
		c, err := w.restore(t)
		if w.place.Obeyed[t.dir] != nil || t.outside { // in a place that nobody thinks of
			for _, names := range [][]string{c.Undone, c.Lost, c.Hiding} {
				for i := range names {
					names[i] = filepath.Join(t.dir, filepath.FromSlash(names[i]))
				}
			}
		}
		all.Undone, all.Lost = append(all.Undone, c.Undone...), append(all.Lost, c.Lost...)
		all.Unseen, all.Hiding = append(all.Unseen, c.Unseen...), append(all.Hiding, c.Hiding...)
		errs = append(errs, err)
	}
	for _, names := range []*[]string{&all.Undone, &all.Lost, &all.Hiding} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	err := errors.Join(errs...)
	if len(all.Unseen) == 0 && err == nil { // else the next one tries again
		err = w.forget()
	}
	return all, err
}

func (w *Watched) restore(t *tree) (_ Changes, err error) {
	if info, err := os.Stat(t.dir); err == nil && info.Mode().Perm()&0o500 != 0o500 { // a command has closed it
		_ = os.Chmod(t.dir, info.Mode()|0o700)
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return Changes{}, fmt.Errorf("look at %s again: %w", t.dir, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	k := &keeper{root: root, dir: t.dir, place: w.place, list: w.list, known: t.known, names: maps.Clone(t.scope)}
	k.allowed = func(name string) bool { return w.allowed(t, filepath.Join(t.dir, filepath.FromSlash(name))) }
	var errs []error
	for _, name := range t.pointed {
		errs = append(errs, k.straighten(name, t.names[name]))
	}
	if t.space {
		most := t.seen.dirs + t.most()
		if t.seen.all() && !t.outside {
			most = t.seen.dirs + w.list.newDirs()
		}
		seen := w.list.look(t.dir, most, func(name string) bool {
			return !t.seen.unseen[name] && root.Chmod(name, 0o700) == nil // so that nothing can be hidden there
		})
		maps.Copy(k.names, seen.names)
		k.sawAll = t.seen.saw
		errs = append(errs, k.fixLinks(seen, t.seen))
		switch {
		case t.outside || !t.seen.all():
		case seen.all():
			w.dirs = seen.dirs
		default:
			k.changes.Unseen = seen.crowded(t.dir)
		}
	}
	for name, s := range k.names {
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
	k.changes.Hiding = passing(root, k.names, t.passed).fresh
	if err := errors.Join(errs...); err != nil {
		return k.changes, fmt.Errorf("put back in %s: %w", t.dir, err)
	}
	return k.changes, nil
}

// allowed reports whether the user has allowed a path by name: not only a directory
// above, which says nothing about what is guarded in it.
func (w *Watched) allowed(t *tree, path string) bool {
	return slices.ContainsFunc(w.list.writable, func(dir string) bool {
		if !within(dir, path) {
			return false
		}
		for parts := strings.Split(dir, string(filepath.Separator)); len(parts) > 0; parts = parts[:len(parts)-1] {
			if reservedPath(parts) != "" {
				return true
			}
		}
		for name := range t.scope {
			if name != "." && within(filepath.Join(t.dir, filepath.FromSlash(name)), dir) {
				return true
			}
		}
		return false
	})
}

// isPlainDir reports whether each part of a path is a directory, not a link to one.
func isPlainDir(root *os.Root, name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if info, err := root.Lstat(at); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}
