// Package putback keeps what git and agents obey, and puts it back when a command has ended that could
// write it. It is for machines that cannot keep these files from the command itself.
package putback

import (
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// Bounds of what is kept. What is beyond them is told if it may have changed.
const (
	maxUnits = 2000
	maxFiles = 10_000
	maxFile  = 8 << 20
	maxBytes = 64 << 20

	maxConfig = 1 << 20 // of a config that a command has left
)

// Place is what a command can write. Paths are absolute and without links.
type Place struct {
	Workspace    string
	GitDirs      []string // the workspace's own
	Repositories []string // all git directories, and .git files
	Obeyed       []string // what else is kept as it is, wherever it lies, with all that is below
}

// Before is what was there.
type Before struct {
	Spaces []string         // directories in which the command can write
	Units  map[string]*Unit // by absolute path
	files  int
	bytes  int64
}

// Unit is kept as a whole.
type Unit struct {
	Space   string            // that it lies in
	Git     bool              // only what git obeys in it is kept
	Entries map[string]*Entry // by path from Space; nil: nothing is there
	Cut     bool              // there is more than is kept
}

// Entry is a file, directory or link.
type Entry struct {
	Mode os.FileMode
	Text []byte
	Link string
	Size int64 // of a file that is too large to be kept; Text is nil then
}

// obeyed are the names in a git directory that say what git runs, and where it looks.
func obeyed() []string {
	return []string{
		"config", "config.worktree", "hooks", "info", "commondir", "gitdir", "remotes", "branches",
		"objects/info/alternates", "objects/info/http-alternates",
	}
}

// Begin keeps what is there. What commands that began earlier and still run can write is taken from what was
// kept for them: one of them may have changed it since.
func Begin(p Place, running []*Before) *Before {
	b := &Before{Spaces: append([]string{p.Workspace}, p.GitDirs...), Units: map[string]*Unit{}}
	for _, r := range running {
		for at, u := range r.Units {
			if _, in := space(b.Spaces, at); in && b.Units[at] == nil {
				b.Units[at] = u
			}
		}
	}
	for _, at := range append(slices.Clip(p.Repositories), filepath.Join(p.Workspace, ".git")) {
		if info, err := os.Lstat(at); err == nil {
			b.add(at, info.IsDir(), running)
		}
	}
	for _, at := range p.Obeyed {
		b.add(at, false, running)
	}
	return b
}

func (b *Before) add(at string, git bool, running []*Before) {
	if b.Units[at] != nil || len(b.Units) >= maxUnits {
		return
	}
	for _, r := range running {
		if u := r.Units[at]; u != nil {
			b.Units[at] = u
			return
		}
	}
	for _, r := range running {
		if _, in := space(r.Spaces, at); in {
			return // a command that still runs has made it
		}
	}
	dir, ok := space(b.Spaces, at)
	if !ok {
		dir = filepath.Dir(at)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close() // only read from
	u := &Unit{Space: dir, Git: git, Entries: map[string]*Entry{}}
	name, _ := filepath.Rel(dir, at) // it lies in it
	name = filepath.ToSlash(name)
	if !git {
		b.keep(root, u, name)
	} else if info, err := root.Lstat(name); err == nil && info.IsDir() {
		for _, entry := range obeyed() {
			b.keep(root, u, path.Join(name, entry))
		}
	}
	b.Units[at] = u
}

// space returns which of some directories a path lies in, the last one first.
func space(dirs []string, at string) (dir string, ok bool) {
	for _, dir := range slices.Backward(dirs) {
		if rel, err := filepath.Rel(dir, at); err == nil && filepath.IsLocal(rel) {
			return dir, true
		}
	}
	return "", false
}

// keep notes a path with all that is below.
func (b *Before) keep(root *os.Root, u *Unit, name string) {
	info, err := root.Lstat(name)
	if err != nil {
		u.Entries[name] = nil
		return
	}
	if b.files++; b.files > maxFiles {
		u.Cut = true
		return
	}
	e := &Entry{Mode: info.Mode()}
	u.Entries[name] = e
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		e.Link, _ = root.Readlink(name) // it was a link just now
	case info.IsDir():
		for _, entry := range names(root, name) {
			if !u.passes(entry) {
				b.keep(root, u, path.Join(name, entry))
			}
		}
	case info.Mode().IsRegular():
		e.Text, err = careful.ReadFileIn(root, name, min(maxFile, maxBytes-b.bytes))
		if b.bytes += int64(len(e.Text)); err != nil {
			e.Text, e.Size = nil, info.Size()
		} else if e.Text == nil {
			e.Text = []byte{}
		}
	}
}

// passes reports whether an entry of a directory is not kept: work trees of agents, and what git does not run.
func (u *Unit) passes(entry string) bool {
	if u.Git {
		return strings.HasSuffix(entry, ".sample")
	}
	return entry == "worktrees" || entry == "node_modules"
}

// names are the entries of a directory, sorted; none if it cannot be read.
func names(root *os.Root, dir string) (all []string) {
	f, err := root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close() // only read from
	all, _ = f.Readdirnames(maxFiles)
	slices.Sort(all)
	return all
}

// Kept reports whether what is obeyed at a path is put back.
func (b *Before) Kept(at string) bool {
	if b.Units[at] != nil {
		return true
	}
	for ; len(at) > 1; at = filepath.Dir(at) {
		if u := b.Units[at]; u != nil {
			return !u.Git
		}
	}
	return false
}

// Merge takes over what a command may change in a config of git that was put back: the text that it has left.
type Merge func(ctx context.Context, config string, base, left []byte) (told []string, err error)

// End puts back what has changed, as far as nobody has allowed that by name. told follows the name of the command.
func (b *Before) End(ctx context.Context, allowed func(path string) bool, merge Merge) (told []string, err error) {
	e := &end{ctx: ctx, before: b, allowed: allowed, merge: merge}
	for _, at := range slices.Sorted(maps.Keys(b.Units)) {
		e.unit(at, b.Units[at])
	}
	return e.said()
}
