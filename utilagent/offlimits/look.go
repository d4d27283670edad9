package offlimits

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Bounds of how many directories of a workspace are looked at. A command may add more,
// and what it has added is looked through: it took longer to make.
const (
	maxDirs    = 20_000
	maxNewDirs = 300_000
)

// view is what was seen of a workspace: where something guarded lies, by
// slash-separated path, and which directories were not looked at.
type view struct {
	names  map[string]scope
	links  map[linkID]bool
	found  []link // of links, with their names
	unseen map[string]bool
	dirs   int // looked at
	most   int
}

// all reports whether everything was seen.
func (v view) all() bool { return len(v.unseen) == 0 }

// saw reports whether a path would have been seen if it had been there.
func (v view) saw(name string) bool {
	for at := path.Dir(name); len(v.unseen) > 0; at = path.Dir(at) {
		if v.unseen[at] {
			return false
		}
		if at == "." {
			break
		}
	}
	return true
}

// look goes through at most so many directories of a workspace, those near its
// top first and node_modules last. unreadable is called for a directory that
// cannot be read; true: try again.
func (l List) look(workspace string, most int, unreadable func(name string) bool) view {
	v := view{names: map[string]scope{}, links: map[linkID]bool{}, unseen: map[string]bool{}, most: most}
	var later []string
	for todo := []string{"."}; len(todo) > 0 || len(later) > 0; {
		if len(todo) == 0 {
			todo, later = later, nil
		}
		at := todo[0]
		todo = todo[1:]
		if v.dirs++; v.dirs > most {
			for _, name := range slices.Concat([]string{at}, todo, later) {
				v.unseen[name] = true
			}
			return v
		}
		inner, err := l.lookInto(workspace, at, &v)
		if err != nil && unreadable != nil && unreadable(at) {
			inner, err = l.lookInto(workspace, at, &v)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.unseen[at] = true
		}
		for _, name := range inner {
			if path.Base(name) == "node_modules" {
				later = append(later, name)
			} else {
				todo = append(todo, name)
			}
		}
	}
	return v
}

// lookInto notes what is guarded in a directory, and returns the directories in
// it. Only names are read; what is done with them goes through an os.Root.
func (l List) lookInto(workspace, at string, v *view) (inner []string, err error) {
	f, err := os.Open(filepath.Join(workspace, filepath.FromSlash(at)))
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	var s Shape
	more := false
	add := func(name string) {
		if more = more || len(inner) >= 2*v.most; !more {
			inner = append(inner, name)
		}
	}
	for {
		entries, err := f.ReadDir(512)
		if len(entries) > 0 { // names that can be read, and nothing else, hide what they name
			if _, err := os.Lstat(filepath.Join(f.Name(), entries[0].Name())); errors.Is(err, fs.ErrPermission) {
				return nil, err
			}
		}
		for _, e := range entries {
			name := path.Join(at, e.Name())
			if e.Type()&fs.ModeSymlink != 0 {
				v.link(workspace, name)
			}
			p := plain(e.Name())
			obeyed := isAgents(p) || isObeyed(name)
			if s.Add(p); p == "" || p[0] != '.' && !isGit(p) && !obeyed {
				if e.IsDir() && !l.hides(workspace, name) {
					add(name)
				}
				continue
			}
			switch {
			case isGit(p):
				v.names[name] = repository
			case obeyed:
				if !l.isHome(workspace, at) { // there it is the program's own
					v.names[name] = agentFiles
				}
				if e.IsDir() && !l.hides(workspace, name) { // work trees lie there, too
					add(name)
				}
			case l.hides(workspace, name): // uwf itself writes there meanwhile
			case p == ".uwf":
				v.names[name] = uwfHome
			case reserved(p) != "":
				v.names[name] = everything
			case e.IsDir():
				add(name)
			}
		}
		if err != nil || len(entries) == 0 {
			if s.IsGit() {
				v.names[at] = repository
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if more && err == nil {
				err = errEnough
			}
			return inner, err
		}
	}
}

// isHome reports whether a directory of the workspace is the user's own.
func (l List) isHome(workspace, at string) bool {
	return l.user != "" && filepath.Join(workspace, filepath.FromSlash(at)) == l.user
}

func (l List) hides(workspace, name string) bool {
	return len(l.hidden) > 0 && slices.Contains(l.hidden, filepath.Join(workspace, filepath.FromSlash(name)))
}
