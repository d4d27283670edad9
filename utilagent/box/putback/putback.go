// Package putback saves the files that git and agents obey, and restores them after a command that could
// write them. It is for machines that cannot deny the command access to these files.
package putback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/box/endcheck"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Bounds of what is saved. Possible changes beyond them are reported.
const (
	maxUnits = 2000
	maxFiles = 10_000
	maxFile  = 8 << 20
	maxBytes = 64 << 20
)

// Place describes what a command can write. Paths are absolute and free of symbolic links.
type Place struct {
	Workspace    string
	GitDirs      []string // the workspace's own
	Repositories []string // all git directories and .git files
	Obeyed       []string // other paths to save, with everything below
}

// Before is the saved state.
type Before struct {
	Spaces []string         // directories that the command can write
	Units  map[string]*Unit // by absolute path
	files  int
	bytes  int64
	short  error // see [endcheck.Short]
}

// Unit is a path that is saved as a whole.
type Unit struct {
	Space   string            // the space that contains it
	Git     bool              // only files that git obeys are saved
	Entries map[string]*Entry // by path from Space; nil if absent
	Cut     bool              // some entries were not saved
}

// Entry is a file, directory or link.
type Entry struct {
	Mode os.FileMode
	Text []byte
	Link string
	Size int64 // size of a file too large to save; Text is nil then
	Shut bool  // a directory that could not be read, so that nothing is known about its entries
}

// read returns the entry at a path, or nil if it is absent. It reads at most most bytes of text.
func read(root *os.Root, name string, most int64) (*Entry, error) {
	info, err := root.Lstat(name)
	if no := syscall.Errno(0); errors.As(err, &no) && no != syscall.ENOENT && no != syscall.ENOTDIR {
		return nil, err
	}
	if err != nil { // absent, or behind a link out of the space, such as objects that another repository shares
		return nil, nil
	}
	e := &Entry{Mode: info.Mode()}
	switch {
	case e.Mode&os.ModeSymlink != 0:
		e.Link, _ = root.Readlink(name) // it was a link a moment ago
	case e.Mode.IsRegular():
		text, err := safeopen.ReadFileIn(root, name, most)
		if endcheck.Short(err) {
			return nil, err
		}
		if e.Text = append([]byte{}, text...); err != nil {
			e.Text, e.Size = nil, info.Size()
		}
	}
	return e, nil
}

// whole reports whether an entry can be recreated. Large files, pipes and sockets cannot.
func (e *Entry) whole() bool { return e.Mode.IsDir() || e.Link != "" || e.Text != nil }

func (e *Entry) same(other *Entry) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.Mode == other.Mode && e.Link == other.Link && e.Size == other.Size && bytes.Equal(e.Text, other.Text)
}

// obeyed returns the names in a git directory that determine what git runs and where it looks.
func obeyed() []string {
	return []string{
		"config", "config.worktree", "hooks", "info", "commondir", "gitdir", "remotes", "branches",
		"objects/info/alternates", "objects/info/http-alternates",
	}
}

// Begin saves the current state. Paths that a running command can write are taken from the state saved for
// that command, because it may have changed them since. It fails if there are too few descriptors or too little memory:
// what it did not see would count as the command's.
func Begin(p Place, running []*Before) (*Before, error) {
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
	return b, b.short
}

// add saves a path, unless it cannot be read. Then [Before.Kept] returns false.
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
			return // created by a command that is still running
		}
	}
	dir, ok := space(b.Spaces, at)
	if !ok {
		dir = filepath.Dir(at)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.miss(err)
		return
	}
	defer root.Close() // opened for reading
	u := &Unit{Space: dir, Git: git, Entries: map[string]*Entry{}}
	name, _ := filepath.Rel(dir, at) // always relative, since dir contains at
	top := []string{"."}
	if git {
		top = obeyed()
	}
	for _, entry := range top {
		if !b.keep(root, u, path.Join(filepath.ToSlash(name), entry)) {
			return
		}
	}
	b.Units[at] = u
}

// miss records an error because of which what exists could count as new.
func (b *Before) miss(err error) {
	if endcheck.Short(err) {
		b.short = err
	}
}

// space returns the last of dirs that contains a path, and the path relative to it.
func space(dirs []string, at string) (dir string, ok bool) {
	for _, dir := range slices.Backward(dirs) {
		if rel, err := filepath.Rel(dir, at); err == nil && filepath.IsLocal(rel) {
			return dir, true
		}
	}
	return "", false
}

// keep saves a path and everything below it. It reports whether it could determine what is there.
func (b *Before) keep(root *os.Root, u *Unit, name string) bool {
	if b.files++; b.files > maxFiles {
		u.Cut = true
		return true
	}
	e, err := read(root, name, min(maxFile, maxBytes-b.bytes))
	if err != nil {
		b.miss(err)
		return false
	}
	if u.Entries[name] = e; e == nil {
		return true
	}
	b.bytes += int64(len(e.Text))
	if e.Mode.IsDir() {
		all, err := names(root, name)
		b.miss(err)
		e.Shut = err != nil
		for _, entry := range all {
			e.Shut = !u.passes(entry) && !b.keep(root, u, path.Join(name, entry)) || e.Shut
		}
	}
	return true
}

// passes reports whether an entry of a directory is not saved: agents' work trees, and files that git does
// not run.
func (u *Unit) passes(entry string) bool {
	if u.Git {
		return strings.HasSuffix(entry, ".sample")
	}
	return entry == "worktrees" || entry == "node_modules"
}

// names returns the sorted entries of a directory.
func names(root *os.Root, dir string) (all []string, err error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	if all, err = f.Readdirnames(maxFiles); errors.Is(err, io.EOF) {
		err = nil // it is empty
	}
	slices.Sort(all)
	return all, err
}

// Kept reports whether the protected files at a path are restored.
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

// Merge applies the permitted changes to the git config in dir, which was restored; left is the text that the command
// left.
type Merge func(ctx context.Context, dir *os.Root, base, left []byte) (messages []string, err error)

// End restores changed files, except those that the user explicitly allowed. The messages complete a
// line that starts with the command's name.
func (b *Before) End(ctx context.Context, allowed func(path string) bool, merge Merge) (messages []string, err error) {
	e := &end{ctx: ctx, before: b, allowed: allowed, merge: merge}
	for _, at := range slices.Sorted(maps.Keys(b.Units)) {
		e.errs = append(e.errs, e.unit(at, b.Units[at]))
	}
	for _, s := range []struct {
		names []string
		what  string
	}{
		{e.undone, "changed files that control git or agents; they were restored: "},
		{e.lost, "removed, moved or changed files that cannot be restored: "},
	} {
		if slices.Sort(s.names); len(s.names) > 0 {
			e.messages = append(e.messages, s.what+plaintext.Names(slices.Compact(s.names), maxNames))
		}
	}
	return e.messages, errors.Join(e.errs...)
}

const maxNames = 20

type end struct {
	ctx     context.Context
	before  *Before
	allowed func(path string) bool
	merge   Merge

	root                   *os.Root
	space                  string
	undone, lost, messages []string
	errs                   []error
}

// shown returns a name for display, relative to the workspace if possible.
func (e *end) shown(name string) string {
	full := filepath.Join(e.space, filepath.FromSlash(name))
	if rel, err := filepath.Rel(e.before.Spaces[0], full); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return full
}

func (e *end) unit(at string, u *Unit) (err error) {
	if info, err := os.Lstat(u.Space); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 {
		_ = os.Chmod(u.Space, info.Mode().Perm()|0o700) // the command removed permissions
	}
	root, err := os.OpenRoot(u.Space)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the whole directory is gone, which is obvious
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	e.root, e.space = root, u.Space
	name, _ := filepath.Rel(u.Space, at) // always relative, since Space contains at
	name = filepath.ToSlash(name)
	if u.Git && !e.isDir(name) {
		if !slices.Contains(e.before.Spaces, at) { // otherwise the end check reports it
			e.lost = append(e.lost, e.shown(name))
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(u.Entries)) { // directories before their contents
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

// isDir reports whether each part of a path is a directory, and restores permissions that a command removed.
func (e *end) isDir(name string) bool {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err := e.root.Lstat(name[:i])
		if err != nil || !info.IsDir() {
			if endcheck.Short(err) {
				e.errs = append(e.errs, err)
			}
			return false
		}
		if info.Mode()&0o700 != 0o700 {
			_ = e.root.Chmod(name[:i], info.Mode().Perm()|0o700) // the next step reports a failure
		}
	}
	return true
}

// entry restores the entry at a path. For a git config it merges the permitted changes.
func (e *end) entry(u *Unit, name string, was *Entry) (err error) {
	most := int64(maxFile)
	if was != nil && !was.whole() {
		most = 0
	}
	now, err := read(e.root, name, most)
	if err != nil {
		return err
	}
	same := now.same(was) || !u.Git && path.Base(name) == ".claude.json" && sameNotes(was, now)
	switch {
	case same:
	case was == nil:
		err = safeopen.RemoveAllIn(e.root, name)
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
		dir, err := e.root.OpenRoot(path.Dir(name))
		if err != nil {
			return err
		}
		messages, err := e.merge(e.ctx, dir, was.Text, now.Text)
		e.messages = append(e.messages, messages...)
		return errors.Join(err, dir.Close())
	case !same:
		e.undone = append(e.undone, e.shown(name))
	}
	if was != nil && was.Mode.IsDir() && !was.Shut {
		return e.names(u, name)
	}
	return nil
}

// names removes new entries of a directory.
func (e *end) names(u *Unit, dir string) (err error) {
	all, err := names(e.root, dir)
	for _, entry := range all {
		name := path.Join(dir, entry)
		if _, was := u.Entries[name]; was || u.Cut || u.passes(entry) || e.allowed(filepath.Join(e.space, filepath.FromSlash(name))) {
			continue
		}
		if failed := safeopen.RemoveAllIn(e.root, name); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		e.undone = append(e.undone, e.shown(name))
	}
	return err
}

// make recreates an entry. A repository that replaced it may contain work, so it is renamed, not removed.
func (e *end) make(name string, was, now *Entry) (err error) {
	switch {
	case now == nil || now.Mode.Type() == was.Mode.Type():
	case now.Mode.IsDir() && offlimits.IsGit(path.Base(name)):
		err = endcheck.Aside(e.root, name)
	default:
		err = safeopen.RemoveAllIn(e.root, name)
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

// sameNotes reports whether two states of Claude Code's notes name the same programs and trust the same
// projects.
func sameNotes(was, now *Entry) bool {
	if was == nil || now == nil || was.Mode != now.Mode || was.Text == nil || now.Text == nil {
		return false
	}
	before, err := obeyedNotes(was.Text)
	after, failed := obeyedNotes(now.Text)
	return err == nil && failed == nil && bytes.Equal(before, after)
}

// obeyedNotes returns the notes that name programs or disable confirmation, for all projects.
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

// obeyedKeys drops entries that neither name a program nor allow anything, as written for a new project.
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
