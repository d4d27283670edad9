package endcheck

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// stamp knows a file or directory again. No program can set Changed.
type stamp struct {
	Dev, Ino                uint64
	Changed, Modified, Size int64
	Perm                    fs.FileMode
	Dir, File               bool
}

// same reports whether two stamps are of one file, changed or not.
func (s stamp) same(other stamp) bool { return s.Dev == other.Dev && s.Ino == other.Ino && s.Ino != 0 }

// dir is what is noted of a directory.
type dir struct {
	Stamp   stamp
	Noted   int64
	Dirs    []string // that are looked at as well
	Git     []string // names of .git
	Obeyed  []string
	Secrets []string
	Links   []string // symbolic links
	Bare    bool     // git takes it for a repository
	Named   bool     // it has a name that would be a setting in one
}

// tick is how long after a change a file system may give another one the same time.
const tick = 50 * time.Millisecond

func (d *dir) racy() bool {
	return d.Stamp.Ino == 0 || d.Noted-max(d.Stamp.Changed, d.Stamp.Modified) < int64(tick)
}

// look is one look at a workspace.
type look struct {
	*Before
	spaces []*space
	dirs   map[string]*dir
	cut    map[string]bool // not looked at: there are too many
	closed []string        // cannot be read
	over   map[string]bool // what of git directories is too much to be looked through
	read   int             // directories that were read
	opens  bool            // closed directories are opened
}

// space is a directory that a command could write.
type space struct {
	dir  string
	root *os.Root
	top  *os.File
}

func (b *Before) open() (_ *look, err error) {
	l := &look{Before: b, dirs: map[string]*dir{}, cut: map[string]bool{}, over: map[string]bool{}}
	for _, at := range append([]string{b.Workspace}, b.GitDirs...) {
		s := &space{dir: at}
		if s.root, err = openRoot(at); err == nil {
			if s.top, err = s.root.Open("."); err == nil {
				l.spaces = append(l.spaces, s)
				continue
			}
			_ = s.root.Close()
		}
		if at == b.Workspace {
			return nil, err
		}
	}
	return l, nil
}

// openRoot opens a directory; a link on the way is an error, since it leads to where the command may not write.
func openRoot(dir string) (*os.Root, error) {
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return nil, cmp.Or(err, fmt.Errorf("a symbolic link leads to %s", plaintext.Line(dir)))
	}
	return os.OpenRoot(dir)
}

func (l *look) close() {
	for _, s := range l.spaces {
		_ = errors.Join(s.top.Close(), s.root.Close()) // only read from
	}
}

// space returns the space that an absolute path lies in, the innermost first, and its name there.
func (l *look) space(at string) (*space, string) {
	for _, s := range slices.Backward(l.spaces) {
		if rel, err := filepath.Rel(s.dir, at); err == nil && filepath.IsLocal(rel) {
			return s, filepath.ToSlash(rel)
		}
	}
	return nil, ""
}

// maxDepth bounds how deep directories are looked for: each is opened from the top.
const maxDepth = 100

// walk notes the directories of the workspace, at most so many, node_modules last.
func (l *look) walk(known map[string]*dir, most int, skip map[string]bool) {
	top := l.spaces[0]
	todo, later := []string{"."}, []string(nil)
	for len(todo) > 0 || len(later) > 0 {
		if len(todo) == 0 {
			todo, later = later, nil
		}
		at := todo[0]
		todo = todo[1:]
		if skip[at] {
			continue
		}
		if len(l.dirs) >= most || strings.Count(at, "/") > maxDepth {
			l.cut[at] = true
			continue
		}
		st, err := stampOf(top.top, at)
		if err != nil || !st.Dir {
			continue
		}
		d := known[at]
		if d == nil || d.Stamp != st || d.racy() {
			l.read++
			if d, err = l.note(top, at, st); err != nil {
				l.closed = append(l.closed, at)
				d = &dir{Stamp: st, Noted: l.now()}
			}
		}
		l.dirs[at] = d
		for _, name := range d.Dirs {
			if name == "node_modules" {
				later = append(later, join(at, name))
			} else {
				todo = append(todo, join(at, name))
			}
		}
	}
}

// note reads a directory.
func (l *look) note(top *space, at string, st stamp) (*dir, error) {
	if l.opens && st.Perm&0o500 != 0o500 {
		_ = top.root.Chmod(at, st.Perm|0o700) // else nothing in it is seen
	}
	f, err := top.root.Open(at)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	d := &dir{Noted: l.now()}
	if d.Stamp, err = stampOf(f, "."); err != nil {
		return nil, err
	}
	var git shape
	under := obeyedAbove(at)
	for {
		entries, err := f.ReadDir(512)
		for _, e := range entries {
			name := e.Name()
			p := offlimits.Plain(name)
			git.add(p)
			d.Named = d.Named || slices.Contains(armed(), p)
			full := join(at, name)
			switch {
			case offlimits.IsGit(name):
				d.Git = append(d.Git, name)
				continue
			case under && !keptBy(p), offlimits.Obeyed(full):
				d.Obeyed = append(d.Obeyed, name)
			case !e.IsDir() && isSecret(p):
				d.Secrets = append(d.Secrets, name)
			case e.Type()&fs.ModeSymlink != 0:
				d.Links = append(d.Links, name)
			}
			if e.IsDir() && p != ".uwf" { // uwf itself writes there meanwhile
				d.Dirs = append(d.Dirs, name)
			}
		}
		if err != nil || len(entries) == 0 {
			d.Bare = git.isGit()
			break
		}
	}
	return d, nil
}

// keptBy reports whether a name in a directory of an agent's is of what it works on.
func keptBy(p string) bool { return p == "worktrees" || p == "node_modules" }

// obeyedAbove reports whether a directory is one that agents obey, or lies in one.
func obeyedAbove(at string) bool {
	for ; at != "."; at = path.Dir(at) {
		if keptBy(path.Base(at)) {
			return false
		}
		if offlimits.Obeyed(at) {
			return true
		}
	}
	return false
}

// isSecret reports whether a plain name is of a file with keys for a program's environment.
func isSecret(p string) bool {
	rest, ok := strings.CutPrefix(p, ".env")
	if !ok || rest != "" && rest[0] != '.' {
		return false
	}
	return !slices.ContainsFunc([]string{"example", "sample", "template", "dist", "defaults"}, func(end string) bool { return strings.HasSuffix(rest, end) })
}

// shape is what a directory has of that by which git knows a git directory,
// whatever it is called. Git looks for one in every directory that it is started
// in or below, and then obeys its config and hooks.
type shape struct{ head, objects, refs, common bool }

// add counts an entry; its name is a plain one.
func (s *shape) add(name string) {
	switch name {
	case "head":
		s.head = true
	case "objects":
		s.objects = true
	case "refs":
		s.refs = true
	case "commondir": // names the directory that has objects and refs
		s.common = true
	}
}

// isGit reports whether git takes the directory for a repository.
func (s shape) isGit() bool { return s.head && (s.common || s.objects && s.refs) }
