package offlimits

import (
	"bytes"
	"crypto/rand"
	"encoding/gob"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// A baseline that is kept while a command runs, for whoever comes after a kill.
type (
	savedWatched struct {
		Hidden, Readable, Writable []string
		Home                       string
		Place                      Place
		Trees                      []savedTree
	}
	savedTree struct {
		Dir     string
		Space   bool
		Outside bool
		Links   map[linkID]bool
		Names   map[string]*savedNode // without those that were not there
		Scope   map[string]scope
		Pointed []string
		Unseen  map[string]bool
		Dirs    int
		Known   map[string]bool
		Passed  map[passedID]bool
	}
	savedNode struct {
		Mode           fs.FileMode
		Content        []byte
		Whole, Partial bool
		Link           string
		Children       map[string]*savedNode
		Scope          scope
	}
)

// maxSaved bounds a file of a baseline.
const maxSaved = 4 * maxBytes

const savedSuffix = ".baseline"

// Save keeps what was in a directory that commands cannot write to, until Restore:
// if this process is killed while a command runs, [Recover] puts it back.
func (w *Watched) Save(dir string) error {
	s := savedWatched{Hidden: w.list.hidden, Readable: w.list.readable, Writable: w.list.writable, Home: w.list.home, Place: w.place}
	for _, t := range w.trees {
		st := savedTree{Dir: t.dir, Space: t.space, Outside: t.outside, Links: t.seen.links, Names: map[string]*savedNode{}, Scope: t.scope, Pointed: t.pointed, Unseen: t.seen.unseen, Dirs: t.seen.dirs, Known: t.known, Passed: t.passed}
		for name, n := range t.names {
			if n != nil {
				st.Names[name] = n.saved()
			}
		}
		s.Trees = append(s.Trees, st)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		return err
	}
	if err := durable.MkdirAll(durable.OS(), dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, rand.Text()+savedSuffix)
	held, err := durable.TryLock(file + ".lock")
	if err != nil {
		return err
	}
	w.saved, w.held = file, held
	// It is for a kill, not for a power cut, so that nobody waits for the disk.
	err = durable.WriteAll(durable.OS(), []durable.File{{Path: file, Data: b.Bytes(), Perm: 0o600}}, durable.None)
	if err != nil {
		err = errors.Join(err, w.forget())
	}
	return err
}

// forget removes what Save has kept.
func (w *Watched) forget() error {
	if w.held == nil {
		return nil
	}
	err := durable.OS().Remove(w.saved)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	held := w.held
	w.held = nil
	return errors.Join(err, held.RemoveAndUnlock())
}

// Pending are the workspaces of commands whose agent was killed, and whose changes nobody
// has put back yet. dir is that of Save.
func Pending(dir string) (found []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), savedSuffix) {
			continue
		}
		file := filepath.Join(dir, e.Name())
		held, err := durable.TryLock(file + ".lock")
		if errors.Is(err, durable.ErrLocked) {
			continue // its command still runs
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if s, err := readSaved(file); err == nil { // otherwise nothing had started
			found = append(found, s.Place.Workspace)
		}
		errs = append(errs, held.Unlock())
	}
	return found, errors.Join(errs...)
}

func readSaved(file string) (s savedWatched, err error) {
	text, err := careful.ReadFile(file, maxSaved, careful.NoFollow)
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(text)).Decode(&s)
	}
	return s, err
}

// Recover puts back what commands have changed during which their agent was
// killed. dir is that of Save.
func Recover(dir string) (Changes, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Changes{}, nil
	}
	var all Changes
	errs := []error{err}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), savedSuffix) {
			c, err := recoverFile(filepath.Join(dir, e.Name()))
			all.Undone, all.Lost = append(all.Undone, c.Undone...), append(all.Lost, c.Lost...)
			all.Unseen, all.Hiding = append(all.Unseen, c.Unseen...), append(all.Hiding, c.Hiding...)
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

func recoverFile(file string) (Changes, error) {
	held, err := durable.TryLock(file + ".lock")
	if errors.Is(err, durable.ErrLocked) {
		return Changes{}, nil // its command still runs
	}
	if err != nil {
		return Changes{}, err
	}
	w := &Watched{saved: file, held: held}
	s, err := readSaved(file)
	if err != nil {
		return Changes{}, w.forget() // gone meanwhile, or never finished: nothing had started
	}
	w.list, w.place = List{hidden: s.Hidden, readable: s.Readable, writable: s.Writable, home: s.Home}, s.Place
	for _, st := range s.Trees {
		if _, err := os.Stat(st.Dir); err != nil {
			continue // the workspace has gone
		}
		t := &tree{dir: st.Dir, space: st.Space, outside: st.Outside, names: map[string]*node{}, scope: st.Scope, pointed: st.Pointed, seen: view{links: st.Links, unseen: st.Unseen, dirs: st.Dirs}, known: st.Known, passed: st.Passed}
		for name, n := range st.Names {
			t.names[name] = n.node()
		}
		w.trees = append(w.trees, t)
	}
	c, err := w.Restore()
	if len(c.Unseen) > 0 {
		err = errors.Join(err, w.held.Unlock()) // for the next one
	}
	for _, names := range [][]string{c.Undone, c.Lost, c.Hiding} {
		for i := range names {
			if !filepath.IsAbs(names[i]) {
				names[i] = filepath.Join(s.Place.Workspace, filepath.FromSlash(names[i]))
			}
		}
	}
	return c, err
}

func (n *node) saved() *savedNode {
	s := &savedNode{Mode: n.mode, Content: n.content, Whole: n.whole, Partial: n.partial, Link: n.link, Scope: n.scope, Children: map[string]*savedNode{}}
	for name, child := range n.children {
		s.Children[name] = child.saved()
	}
	return s
}

func (s *savedNode) node() *node {
	n := &node{mode: s.Mode, content: s.Content, whole: s.Whole, partial: s.Partial, link: s.Link, scope: s.Scope, children: map[string]*node{}}
	for name, child := range s.Children {
		n.children[name] = child.node()
	}
	return n
}
