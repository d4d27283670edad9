package offlimits

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
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
		Names   map[string]*node // without those that were not there
		Scope   map[string]scope
		Pointed []string
		Unseen  map[string]bool
		Dirs    int
		Known   map[string]bool
		Passed  map[passedID]bool
	}
)

// maxSaved bounds a file of a baseline. Each of the directories that are watched can hold maxBytes twice, by
// name and by text: one that could not be read again would be lost.
const maxSaved = 32 * maxBytes

const savedSuffix = ".baseline"

// Keep is [Watch], for a command that can overlap with others in the same repository: a file that
// one of them planted does not count as the user's. Commands cannot write to dir; if this process
// is killed while one runs, [Recover] restores the files from there.
func Keep(dir string, l List, p Place) (*Watched, error) {
	unlock, err := lockGuard(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	w := &Watched{list: l, place: p, guard: dir}
	if w.before, err = running(dir); err != nil {
		return nil, err
	}
	if err := w.remember(); err != nil {
		return nil, err
	}
	return w, w.save(dir)
}

// GuardDir makes the directory for [Keep] that all homes of a user share. Where a user has no
// directory to write to, as in some containers, it is the home's.
func GuardDir(d home.Dirs) string {
	if dir := d.SharedGuard(); filepath.IsAbs(dir) && durable.MkdirAll(durable.OS(), dir, 0o700) == nil {
		return dir
	}
	return d.Guard()
}

// guardPatience bounds how long a command waits while others compare their repositories, which takes
// a second or two in the largest ones.
const guardPatience = 30 * time.Second

// lockGuard keeps others from beginning or ending a baseline, the moments in which neither side would
// see a planted file.
func lockGuard(dir string) (unlock func(), err error) {
	if err := durable.MkdirAll(durable.OS(), dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), guardPatience)
	defer cancel()
	held, err := durable.Lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	return func() { _ = held.Unlock() }, nil
}

// earlier are the baselines of the commands that run.
type earlier []savedTree

// running reads them. A later one already contains the earlier ones' state.
func running(dir string) (trees earlier, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), savedSuffix) {
			s, err := readSaved(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("what was there before another command: %w", err)
			}
			trees = append(trees, s.Trees...)
		}
	}
	return trees, err
}

// node returns the state of a path before the first running command began; false if none of them
// can change it.
func (e earlier) node(path string) (n *node, known map[string]bool, ok bool) {
	for _, t := range e {
		name, err := filepath.Rel(t.Dir, path)
		if name = filepath.ToSlash(name); err != nil || !filepath.IsLocal(name) {
			continue
		}
		was := t.Names[name]
		_, watched := t.Scope[name]
		switch {
		case was != nil:
			return was, t.Known, true
		case watched || t.Space && (view{unseen: t.Unseen}).saw(name):
			return nil, t.Known, true
		}
	}
	return nil, nil, false
}

// save keeps what was in a directory until Restore.
func (w *Watched) save(dir string) error {
	l := w.list
	s := savedWatched{Hidden: l.hidden, Readable: l.readable, Writable: l.writable, Home: l.home, Place: w.place}
	for _, t := range w.trees {
		st := savedTree{
			Dir: t.dir, Space: t.space, Outside: t.outside, Names: maps.Clone(t.names), Scope: t.scope, Pointed: t.pointed,
			Links: t.seen.links, Unseen: t.seen.unseen, Dirs: t.seen.dirs, Known: t.known, Passed: t.passed,
		}
		maps.DeleteFunc(st.Names, func(_ string, n *node) bool { return n == nil })
		s.Trees = append(s.Trees, st)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		return err
	}
	if b.Len() > maxSaved {
		return errors.New("there are too many settings of git")
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

// Lock marks the command as running; a process that outlives this one inherits it. nil: nothing is kept.
func (w *Watched) Lock() *os.File {
	if w.held == nil {
		return nil
	}
	return w.held.File()
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
// has put back yet. dir is Keep's.
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
// killed. dir is Keep's.
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
		w.trees = append(w.trees, &tree{
			dir: st.Dir, space: st.Space, outside: st.Outside, names: st.Names, scope: st.Scope, pointed: st.Pointed,
			seen: view{links: st.Links, unseen: st.Unseen, dirs: st.Dirs}, known: st.Known, passed: st.Passed,
		})
	}
	c, err := w.Restore()
	if w.held != nil { // it is not all restored: the next one tries again
		err = errors.Join(err, w.held.Unlock())
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
