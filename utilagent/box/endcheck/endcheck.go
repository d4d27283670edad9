// Package endcheck looks at a workspace before and after a command, and disarms what is new there
// and would run later: names that agents or uwf obey, repositories, plans of an unfinished rebase.
//
// What exists before is kept from the command by mounts. This package is for what does not: names
// that only appear. It judges names, never content. A directory whose stamp is as noted is not read
// again, so that the cost is one stat for each directory.
//
// A new repository loses its settings: config and hooks are renamed. Without a config git
// still reads it, commits to it, and checks out in it; a person looks at config.uwf-new and renames it back.
// Nothing that a command wrote then runs as its user, and no list of harmless settings is needed.
package endcheck

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Options say what is looked at. Paths are absolute and without links unless they say otherwise.
type Options struct {
	Workspace string
	GitDirs   []string // the workspace's own: its git directory and the common one
	// Outside are directories that the command can write besides: no new link may lead there.
	Outside []string
	// Pointed are slash-separated paths from the workspace at which git's settings point: targets of
	// core.hooksPath and include.path. What is there already is left alone.
	Pointed []string
	Index   string // a file that keeps what is known of directories between runs; "": none
	// Allowed reports whether a person has allowed an absolute path by its name; nil: none.
	Allowed func(path string) bool `json:"-"`
	Most    int                    // directories that are looked at; 0: 20,000
	Now     func() time.Time       // nil: the clock by which file systems note changes
}

// Found is what is there before a command, for the plan of its mounts. Paths are from the workspace,
// slash-separated and sorted.
type Found struct {
	Repositories []string // nested .git directories and files, and bare repositories
	GitDirs      []string // all that the command could write, by absolute path
	Obeyed       []string // what agents, uwf, or systems other than git obey
	Secrets      []string // .env files
	Cut          bool     // there are more directories than Most
}

// Before is a workspace as it was.
type Before struct {
	state
	allowed func(path string) bool
	now     func() int64
}

// state is what is saved.
type state struct {
	Workspace string
	GitDirs   []string
	Pointed   []string
	Led       map[string]stamp // what was there at the paths of Options.Pointed
	Outside   []string
	Lost      map[string]bool // GitDirs that were no repositories
	Most      int
	Index     string
	Dirs      map[string]*dir
	Unseen    map[string]bool   // directories that were too many, by path
	Tops      map[string]stamp  // of GitDirs
	Repos     map[string]*repo  // by absolute path of the git directory
	Pointers  map[string]string // where each .git file or link leads, by path
}

const defaultMost = 20_000

// Begin looks at a workspace before a command starts.
func Begin(o Options) (*Before, error) {
	b := &Before{state: state{Workspace: o.Workspace, GitDirs: o.GitDirs, Outside: o.Outside, Most: o.Most, Index: o.Index}}
	if b.Most == 0 {
		b.Most = defaultMost
	}
	b.connect(o.Allowed, o.Now)
	for _, at := range append([]string{o.Workspace}, o.GitDirs...) {
		if real, err := filepath.EvalSymlinks(at); err == nil && real != at {
			return nil, fmt.Errorf("look at %s: a symbolic link leads there", plaintext.Line(at))
		}
	}
	var known state
	if o.Index != "" {
		known, _ = read(o.Index) // without it all is read
		if known.Workspace != o.Workspace {
			known = state{}
		}
	}
	l, err := b.open()
	if err != nil {
		return nil, err
	}
	defer l.close()
	b.Led = map[string]stamp{}
	for _, name := range o.Pointed {
		if st, err := stampOf(l.spaces[0].top, name); err == nil {
			b.Led[name] = st
		} else {
			b.Pointed = append(b.Pointed, name)
		}
	}
	l.walk(known.Dirs, max(b.Most, len(known.Dirs)), nil)
	b.Dirs, b.Unseen = l.dirs, l.cut
	b.Tops, b.Lost = l.tops(), l.lost()
	b.Pointers = l.pointers()
	b.Repos = l.repositories(known.Repos)
	if l.read > 0 {
		b.keepIndex()
	}
	return b, nil
}

// Since takes for new what another command could have made that began earlier and still runs: what was not
// there before that one.
func (b *Before) Since(o *Before) {
	for at, d := range b.Dirs {
		if rel, err := filepath.Rel(o.Workspace, b.abs(at)); err == nil && filepath.IsLocal(rel) {
			c, was := *d, o.Dirs[filepath.ToSlash(rel)]
			if was == nil {
				was = &dir{}
			}
			c.Git, c.Obeyed, c.Links, c.Bare = was.Git, was.Obeyed, was.Links, was.Bare
			b.Dirs[at] = &c
		}
	}
	for at := range b.Repos {
		if was := o.Repos[at]; was != nil {
			b.Repos[at] = was
		} else if o.could(at) {
			b.Repos[at] = &repo{}
		}
	}
	for name, to := range b.Pointers {
		if rel, err := filepath.Rel(o.Workspace, b.abs(name)); err == nil && filepath.IsLocal(rel) && o.Pointers[filepath.ToSlash(rel)] != to {
			delete(b.Pointers, name)
		}
	}
}

// could reports whether the command could write at an absolute path.
func (b *Before) could(at string) bool {
	return slices.ContainsFunc(append([]string{b.Workspace}, b.GitDirs...), func(dir string) bool { return beneath(dir, at) })
}

func (b *Before) connect(allowed func(string) bool, now func() time.Time) {
	b.allowed, b.now = allowed, fileClock
	if b.allowed == nil {
		b.allowed = func(string) bool { return false }
	}
	if now != nil {
		b.now = func() int64 { return now().UnixNano() }
	}
}

// keepIndex writes what is known for the next run. Without it that one is slower.
func (b *Before) keepIndex() {
	if b.Index != "" {
		_ = write(b.Index, state{Workspace: b.Workspace, Dirs: b.Dirs, Repos: b.Repos})
	}
}

// Found returns what is there.
func (b *Before) Found() (f Found) {
	for at, d := range b.Dirs {
		for _, name := range d.Git {
			if full := join(at, name); !slices.Contains(b.GitDirs, b.abs(full)) && (at != "." || len(b.GitDirs) == 0) {
				f.Repositories = append(f.Repositories, full)
			}
		}
		if d.Bare {
			f.Repositories = append(f.Repositories, at)
		}
		for _, name := range d.Obeyed {
			if !obeyedAbove(at) {
				f.Obeyed = append(f.Obeyed, join(at, name))
			}
		}
		for _, name := range d.Secrets {
			f.Secrets = append(f.Secrets, join(at, name))
		}
	}
	for _, names := range [][]string{f.Repositories, f.Obeyed, f.Secrets} {
		slices.Sort(names)
	}
	f.GitDirs, f.Cut = slices.Sorted(maps.Keys(b.Repos)), len(b.Unseen) > 0
	return f
}

func (b *Before) abs(name string) string { return filepath.Join(b.Workspace, filepath.FromSlash(name)) }

// Save keeps it for a process that calls End after this one was killed.
func (b *Before) Save(path string) error { return write(path, b.state) }

// Load reads what Save wrote.
func Load(path string, allowed func(path string) bool) (*Before, error) {
	s, err := read(path)
	if err != nil {
		return nil, err
	}
	if s.Workspace == "" {
		return nil, errors.New("it names no workspace")
	}
	b := &Before{state: s}
	b.connect(allowed, nil)
	return b, nil
}

const maxState = 256 << 20

func write(path string, s state) error {
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(s); err != nil {
		return err
	}
	return durable.WriteAll(durable.OS(), []durable.File{{Path: path, Data: text.Bytes(), Perm: 0o600}}, durable.None)
}

func read(path string) (s state, err error) {
	text, err := safeopen.ReadFile(path, maxState, safeopen.NoFollow)
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(text)).Decode(&s)
	}
	return s, err
}

func join(at, name string) string {
	if at == "." {
		return name
	}
	return at + "/" + name
}
