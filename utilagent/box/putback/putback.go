// Package putback keeps what git and agents obey, and puts it back when a command has ended that could
// write it. It is for machines that cannot keep these files from the command itself.
package putback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/box/endcheck"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Bounds of what is kept. What is beyond them is told if it may have changed.
const (
	maxUnits = 2000
	maxFiles = 10_000
	maxFile  = 8 << 20
	maxBytes = 64 << 20
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

// read is what is at a path; nil: nothing. most bounds the text.
func read(root *os.Root, name string, most int64) *Entry {
	info, err := root.Lstat(name)
	if err != nil {
		return nil
	}
	e := &Entry{Mode: info.Mode()}
	switch {
	case e.Mode&os.ModeSymlink != 0:
		e.Link, _ = root.Readlink(name) // it was a link just now
	case e.Mode.IsRegular():
		text, err := safeopen.ReadFileIn(root, name, most)
		if e.Text = append([]byte{}, text...); err != nil {
			e.Text, e.Size = nil, info.Size()
		}
	}
	return e
}

// whole reports whether an entry is enough to make it anew: not of a large file, a pipe or a socket.
func (e *Entry) whole() bool { return e.Mode.IsDir() || e.Link != "" || e.Text != nil }

func (e *Entry) same(other *Entry) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.Mode == other.Mode && e.Link == other.Link && e.Size == other.Size && bytes.Equal(e.Text, other.Text)
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
	if b.files++; b.files > maxFiles {
		u.Cut = true
		return
	}
	e := read(root, name, min(maxFile, maxBytes-b.bytes))
	if u.Entries[name] = e; e == nil {
		return
	}
	b.bytes += int64(len(e.Text))
	if e.Mode.IsDir() {
		for _, entry := range names(root, name) {
			if !u.passes(entry) {
				b.keep(root, u, path.Join(name, entry))
			}
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
		e.errs = append(e.errs, e.unit(at, b.Units[at]))
	}
	for _, s := range []struct {
		names []string
		what  string
	}{
		{e.undone, "changed what git or agents obey, which was put back: "},
		{e.lost, "removed, moved or changed what cannot be put back: "},
	} {
		if slices.Sort(s.names); len(s.names) > 0 {
			e.told = append(e.told, s.what+plaintext.Names(slices.Compact(s.names), maxTold))
		}
	}
	return e.told, errors.Join(e.errs...)
}

const maxTold = 20

type end struct {
	ctx     context.Context
	before  *Before
	allowed func(path string) bool
	merge   Merge

	root               *os.Root
	space              string
	undone, lost, told []string
	errs               []error
}

// shown is a name for a person: from the workspace if it lies there.
func (e *end) shown(name string) string {
	full := filepath.Join(e.space, filepath.FromSlash(name))
	if rel, err := filepath.Rel(e.before.Spaces[0], full); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return full
}

func (e *end) unit(at string, u *Unit) (err error) {
	if info, err := os.Lstat(u.Space); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 {
		_ = os.Chmod(u.Space, info.Mode().Perm()|0o700) // a command has closed it
	}
	root, err := os.OpenRoot(u.Space)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // all of it is gone, which everybody sees
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	e.root, e.space = root, u.Space
	name, _ := filepath.Rel(u.Space, at) // it lies in it
	name = filepath.ToSlash(name)
	if u.Git && !e.isDir(name) {
		if !slices.Contains(e.before.Spaces, at) { // else the end check says so
			e.lost = append(e.lost, e.shown(name))
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(u.Entries)) { // directories before what is in them
		switch was := u.Entries[name]; {
		case e.allowed(filepath.Join(u.Space, filepath.FromSlash(name))):
		case e.isDir(path.Dir(name)):
			err = errors.Join(err, e.entry(u, name, was))
		case was != nil:
			e.lost = append(e.lost, e.shown(name))
		}
	}
	return err
}

// isDir reports whether each part of a path is a directory, and opens those that a command has closed.
func (e *end) isDir(name string) bool {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err := e.root.Lstat(name[:i])
		if err != nil || !info.IsDir() {
			return false
		}
		if info.Mode()&0o700 != 0o700 {
			_ = e.root.Chmod(name[:i], info.Mode().Perm()|0o700) // else the next step says why
		}
	}
	return true
}

// entry makes what is at a path as it was. Of a config of git it takes over what a command may change.
func (e *end) entry(u *Unit, name string, was *Entry) (err error) {
	most := int64(maxFile)
	if was != nil && !was.whole() {
		most = 0
	}
	now := read(e.root, name, most)
	same := now.same(was) || !u.Git && path.Base(name) == ".claude.json" && sameNotes(was, now)
	switch {
	case same:
	case was == nil:
		err = e.remove(name)
	case !was.whole():
		e.lost = append(e.lost, e.shown(name))
		return nil
	default:
		err = e.make(name, was, now)
	}
	switch {
	case err != nil:
		return err
	case !same && u.Git && path.Base(name) == "config" && was != nil && was.Text != nil && now != nil && now.Text != nil:
		told, err := e.merge(e.ctx, filepath.Join(e.space, filepath.FromSlash(name)), was.Text, now.Text)
		e.told = append(e.told, told...)
		return err
	case !same:
		e.undone = append(e.undone, e.shown(name))
	}
	if was != nil && was.Mode.IsDir() {
		return e.names(u, name)
	}
	return nil
}

// names removes what is new in a directory.
func (e *end) names(u *Unit, dir string) (err error) {
	for _, entry := range names(e.root, dir) {
		name := path.Join(dir, entry)
		if _, was := u.Entries[name]; was || u.Cut || u.passes(entry) || e.allowed(filepath.Join(e.space, filepath.FromSlash(name))) {
			continue
		}
		if failed := e.remove(name); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		e.undone = append(e.undone, e.shown(name))
	}
	return err
}

// make makes what was at a path. A repository in its place may have somebody's work in it.
func (e *end) make(name string, was, now *Entry) (err error) {
	switch {
	case now == nil || now.Mode.Type() == was.Mode.Type():
	case now.Mode.IsDir() && offlimits.IsGit(path.Base(name)):
		err = endcheck.Aside(e.root, name)
	default:
		err = e.remove(name)
	}
	switch {
	case err != nil:
		return err
	case was.Mode.IsDir():
		if err := e.root.Mkdir(name, was.Mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return e.root.Chmod(name, was.Mode.Perm())
	case was.Link != "":
		return errors.Join(e.root.RemoveAll(name), e.root.Symlink(was.Link, name))
	}
	return endcheck.Replace(e.root, name, was.Text, was.Mode.Perm())
}

// remove removes what a command has made, which it may have closed.
func (e *end) remove(name string) error {
	if err := e.root.RemoveAll(name); err == nil {
		return nil
	}
	_ = fs.WalkDir(e.root.FS(), name, func(at string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && !strings.HasPrefix(at, "..") {
			_ = e.root.Chmod(at, 0o700) // else the removal says why
		}
		return nil
	})
	return e.root.RemoveAll(name)
}

// sameNotes reports whether two states of Claude Code's notes name the same programs, and trust the same.
func sameNotes(was, now *Entry) bool {
	if was == nil || now == nil || was.Mode != now.Mode || was.Text == nil || now.Text == nil {
		return false
	}
	before, err := obeyedNotes(was.Text)
	after, failed := obeyedNotes(now.Text)
	return err == nil && failed == nil && bytes.Equal(before, after)
}

// obeyedNotes are the notes that name programs, or say that nobody need be asked about them; of each
// project as well.
func obeyedNotes(text []byte) ([]byte, error) {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	kept := map[string]any{"": obeyedKeys(all)}
	projects, _ := all["projects"].(map[string]any)
	for name, project := range projects {
		if notes, _ := project.(map[string]any); len(obeyedKeys(notes)) > 0 {
			kept[name] = obeyedKeys(notes)
		}
	}
	return json.Marshal(kept)
}

// obeyedKeys leaves out what names nothing and allows nothing, as a program notes a project first.
func obeyedKeys(notes map[string]any) map[string]any {
	kept := map[string]any{}
	for _, key := range []string{
		"mcpServers", "hooks", "apiKeyHelper", "env", "statusLine", "enabledMcpjsonServers", "enableAllProjectMcpServers",
		"hasTrustDialogAccepted", "hasClaudeMdExternalIncludesApproved", "allowedTools", "bypassPermissionsModeAccepted",
	} {
		text, err := json.Marshal(notes[key])
		if err == nil && !slices.Contains([]string{"{}", "[]", "false", "null", `""`}, string(text)) {
			kept[key] = notes[key]
		}
	}
	return kept
}
