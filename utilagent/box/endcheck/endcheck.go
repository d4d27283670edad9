// Package endcheck compares a workspace before and after a command, and disarms new files that would run code
// later: files that agents or uwf obey, repositories, plans of an unfinished rebase.
//
// Mounts protect files that existed before the command. This package covers new names. It judges names, never
// content. A directory whose stamp is unchanged is not read again, so the cost is one stat per directory.
//
// A new repository loses its settings: config and hooks are renamed. Without a config, git still reads the
// repository, commits to it and checks it out; a person can review config.uwf-new and rename it back. So
// nothing that a command wrote runs as the user, and no list of harmless settings is needed.
package endcheck

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Options configures a check. Paths are absolute and free of symbolic links unless noted.
type Options struct {
	Workspace string
	GitDirs   []string // the workspace's git directory and its common directory
	// Outside lists other writable directories: new links must not point there.
	Outside []string
	// Pointed lists slash-separated paths relative to the workspace that git settings refer to: targets of
	// core.hooksPath and include.path. Existing files there are left alone.
	Pointed []string
	Index   string // file that caches directory stamps between runs, or ""
	// Allowed reports whether the user explicitly allowed an absolute path. Nil allows none.
	Allowed func(path string) bool `json:"-"`
	Most    int                    // maximum number of directories; 0 means 20,000
	Now     func() time.Time       // default: the clock that file systems use for timestamps
}

// Found describes a workspace before a command, for the plan of its mounts. Paths are relative to the
// workspace, slash-separated and sorted.
type Found struct {
	Repositories []string // nested .git directories and files, and bare repositories
	GitDirs      []string // all git directories that the command could write; absolute
	Obeyed       []string // files that agents, uwf, or version control systems other than git obey
	Secrets      []string // .env files
	Cut          bool     // there are more than Most directories
}

// Before is the state of a workspace before a command.
type Before struct {
	state
	allowed func(path string) bool
	now     func() int64
}

// state is the saved part of Before.
type state struct {
	Workspace string
	GitDirs   []string
	Pointed   []string         // paths in Options.Pointed that did not exist
	Led       map[string]stamp // stamps of the other paths in Options.Pointed, and of obeyed files
	Outside   []string
	Lost      map[string]bool // GitDirs that were not repositories
	Most      int
	Index     string
	Dirs      map[string]*dir   `cbor:"-"` // encoded apart, see write
	Unseen    map[string]bool   // directories skipped over the limit, by path
	Tops      map[string]stamp  // stamps of GitDirs
	Repos     map[string]*repo  // by absolute path of the git directory
	Pointers  map[string]string // target of each .git file or link, by path
}

const defaultMost = 20_000

// Begin examines a workspace before a command starts.
func Begin(o Options) (*Before, error) {
	b := &Before{state: state{Workspace: o.Workspace, GitDirs: o.GitDirs, Outside: o.Outside, Most: o.Most, Index: o.Index}}
	if b.Most == 0 {
		b.Most = defaultMost
	}
	b.connect(o.Allowed, o.Now)
	for _, at := range append([]string{o.Workspace}, o.GitDirs...) {
		if real, err := filepath.EvalSymlinks(at); err == nil && real != at {
			return nil, fmt.Errorf("check %s: its path has a symbolic link", plaintext.Line(at))
		}
	}
	var known state
	if o.Index != "" {
		known, _ = read(o.Index) // without an index, everything is read
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
		if st, err := bornOf(l.spaces[0].top, name); err == nil {
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
	for _, name := range b.Found().Obeyed {
		b.Led[name], _ = bornOf(l.spaces[0].top, name) // it may be gone
	}
	if l.short != nil {
		return nil, l.short
	}
	if l.read > 0 {
		b.keepIndex()
	}
	return b, nil
}

// Since treats changes since o as new, because the command of o is still running and may have made them.
func (b *Before) Since(o *Before) {
	for at, d := range b.Dirs {
		if rel, err := filepath.Rel(o.Workspace, b.abs(at)); err == nil && filepath.IsLocal(rel) {
			c, was := *d, o.Dirs[filepath.ToSlash(rel)]
			if was == nil {
				was = &dir{}
			}
			if slices.Equal(d.Git, was.Git) && slices.Equal(d.Obeyed, was.Obeyed) && slices.Equal(d.Links, was.Links) && d.Bare == was.Bare {
				continue
			}
			c.Git, c.Obeyed, c.Links, c.Bare = was.Git, was.Obeyed, was.Links, was.Bare
			c.Noted = 0 // it differs from the directory, so the end must read it again
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

// could reports whether the command could write an absolute path.
func (b *Before) could(at string) bool {
	return slices.ContainsFunc(append([]string{b.Workspace}, b.GitDirs...), func(dir string) bool { return isBelow(dir, at) })
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

// keepIndex saves the cache for the next run, which is slower without it.
func (b *Before) keepIndex() {
	if b.Index != "" {
		_ = write(b.Index, state{Workspace: b.Workspace, Dirs: b.Dirs, Repos: b.Repos})
	}
}

// Found returns what the workspace contained.
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

// Save writes b to a file, for a process that calls End after this one was killed.
func (b *Before) Save(path string) error { return write(path, b.state) }

// Load reads a file written by Save.
func Load(path string, allowed func(path string) bool) (*Before, error) {
	s, err := read(path)
	if err != nil {
		return nil, err
	}
	if s.Workspace == "" {
		return nil, errors.New("no workspace")
	}
	b := &Before{state: s}
	b.connect(allowed, nil)
	return b, nil
}

func join(at, name string) string {
	if at == "." {
		return name
	}
	return at + "/" + name
}

// Changes lists what a command left that would run code later, or that a person would not see. Names are
// relative to the workspace, or absolute outside it.
type Changes struct {
	Moved    []string // new files that agents or uwf obey; renamed
	Disarmed []string // new repository settings; renamed
	Links    []string // new links to unchecked places; removed
	Lost     []string // git directories that are no longer repositories
	Runs     []string // plans of an unfinished rebase; dangerous lines removed, or renamed
	Hiding   []string // files that git ignores changes to
	Closed   []string // unreadable, or over a limit
}

const (
	maxNames = 20
	prefix   = "uwf-new-"
	suffix   = ".uwf-new"
	// maxNew bounds how many new directories are scanned, which takes about three seconds.
	maxNew = 200_000
)

// String describes the changes as a phrase that follows the command's name, or returns "".
func (c Changes) String() string {
	var parts []string
	for _, p := range []struct {
		names []string
		what  string
	}{
		{c.Moved, "created files that control agents or uwf; they were renamed with the prefix " + prefix + " (check them before you rename them back): "},
		{c.Disarmed, "created repository settings; they were renamed with the suffix " + suffix + " (check them before you rename them back): "},
		{c.Links, "created links to writable directories outside the workspace; they were removed: "},
		{c.Lost, "removed or moved files that cannot be restored: "},
		{c.Runs, "changed a rebase so that continuing it could run programs; the commands were removed, " +
			"or the file was renamed with the suffix " + suffix + ": "},
		{c.Hiding, "hid changes from git status and git diff (to show them: git update-index " +
			"--no-assume-unchanged, --no-skip-worktree, or git replace -d): "},
		{c.Closed, "left files that cannot be read or are too many to check: "},
	} {
		if len(p.names) > 0 {
			parts = append(parts, p.what+plaintext.Names(p.names, maxNames))
		}
	}
	return strings.Join(parts, "; it ")
}

// end is one check after a command.
type end struct {
	*look
	was     *Before
	held    func(path string) bool
	settled []string
	changes Changes
	moved   map[string]bool
	repos   map[string]*repo // after the command
	errs    []error
}

// End disarms new files. Call it when no process of the command is running. held reports whether the
// protected files at a path are unchanged. If it is nil, mounts protected them: the hooks of the workspace's own
// git directories, unless these were replaced. settled lists the git configs with only permitted changes.
func (b *Before) End(held func(path string) bool, settled ...string) (Changes, error) {
	return b.end(held, maxNew, settled...)
}

func (b *Before) end(held func(string) bool, most int, settled ...string) (Changes, error) {
	for _, at := range append([]string{b.Workspace}, b.GitDirs...) {
		if info, err := os.Lstat(at); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
			_ = os.Chmod(at, info.Mode().Perm()|0o700) // the command removed permissions
		}
	}
	l, err := b.open()
	if err != nil {
		return Changes{}, err
	}
	defer l.close()
	l.atEnd = true
	e := &end{look: l, was: b, held: held, settled: settled, moved: map[string]bool{}}
	l.walk(b.Dirs, len(b.Dirs)+most, b.Unseen)
	e.pointersOut()
	e.linksOut()
	for at := range l.lost() {
		if !b.Lost[at] {
			e.changes.Lost = append(e.changes.Lost, at)
		}
	}
	e.repositoriesNow()
	e.pointed() // last, because earlier checks use the old names
	e.obeyed()
	for _, at := range l.closed {
		if d := b.Dirs[at]; d == nil || d.Stamp != l.dirs[at].Stamp {
			e.changes.Closed = append(e.changes.Closed, at)
		}
	}
	for at := range l.cut {
		e.changes.Closed = append(e.changes.Closed, at)
	}
	for at := range l.over {
		if s, name := l.space(at); s != nil {
			e.changes.Closed = append(e.changes.Closed, l.shown(s, name))
		}
	}
	e.errs = append(e.errs, l.short)
	if l.short == nil && l.read > 0 && len(b.Unseen) == 0 && len(l.cut) == 0 {
		after := &Before{state: b.state}
		after.Dirs, after.Repos = l.dirs, e.repos
		after.keepIndex()
	}
	c := &e.changes
	for _, names := range []*[]string{&c.Moved, &c.Disarmed, &c.Links, &c.Lost, &c.Runs, &c.Hiding, &c.Closed} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return *c, errors.Join(e.errs...)
}

// before returns the noted state of a directory, or an empty one if the directory is not the same.
func (e *end) before(at string) *dir {
	if d, now := e.was.Dirs[at], e.dirs[at]; d != nil && now != nil && (d.Stamp.same(now.Stamp) || now.Stamp.Ino == 0) {
		return d
	}
	return &dir{}
}

// pointed moves new files at paths that git settings refer to. It also moves obeyed files that were replaced,
// because replacing a file removes the mount over it.
func (e *end) pointed() {
	names := slices.Clone(e.was.Pointed)
	for name, was := range e.was.Led {
		if now, err := bornOf(e.spaces[0].top, name); (err != nil || !now.same(was)) && (e.held == nil || !e.held(e.abs(name))) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		at := name
		for i, c := range name { // if a parent is a link or a file, the command created it: move that instead
			if c == '/' {
				if st, err := stampOf(e.spaces[0].top, name[:i]); err == nil && !st.Dir {
					at = name[:i]
					break
				}
			}
		}
		if _, err := stampOf(e.spaces[0].top, at); err == nil && !e.allowed(e.abs(at)) {
			e.move(at)
		}
	}
}

// obeyed moves new files that agents or uwf obey.
func (e *end) obeyed() {
	for _, at := range e.with(func(d *dir) bool { return len(d.Obeyed) > 0 }) {
		was := e.before(at)
		for _, name := range e.dirs[at].Obeyed {
			full := join(at, name)
			if slices.Contains(was.Obeyed, name) || e.held != nil && e.held(e.abs(full)) || e.isMoved(full) || e.allowed(e.abs(full)) {
				continue
			}
			if d := e.dirs[full]; d != nil && slices.ContainsFunc(d.Dirs, keptBy) {
				continue // its entries are judged one by one
			}
			e.move(full)
		}
	}
}

func (e *end) isMoved(name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if e.moved[at] {
			return true
		}
	}
	return false
}

// move renames a path of the workspace. The new name is next to the outermost parent that is obeyed, or else
// next to the path.
func (e *end) move(name string) {
	top := name
	for at := path.Dir(name); at != "." && !keptBy(path.Base(at)); at = path.Dir(at) {
		if offlimits.Obeyed(at) {
			top = at
		}
	}
	dir := path.Dir(top)
	as := strings.TrimPrefix(name, dir+"/")
	as = strings.TrimLeft(strings.ReplaceAll(as, "/", "__"), ".")
	e.moved[name] = e.rename(e.spaces[0], name, dir, prefix+as[max(0, len(as)-200):], &e.changes.Moved)
}

// pointersOut renames new .git files and links that point to unchecked places.
func (e *end) pointersOut() {
	for name, to := range e.pointers() {
		if s, _ := e.space(to); s != nil || to == "" || e.was.Pointers[name] == to || e.allowed(e.abs(name)) {
			continue
		}
		e.aside(e.spaces[0], name, &e.changes.Disarmed)
	}
}

// linksOut removes new links to places outside the workspace that the command could write: those are not
// checked, and may hold a repository or files that agents obey.
func (e *end) linksOut() {
	for _, at := range e.with(func(d *dir) bool { return len(d.Links) > 0 }) {
		was := e.before(at)
		for _, link := range e.dirs[at].Links {
			name := join(at, link)
			if slices.Contains(was.Links, link) || e.allowed(e.abs(name)) {
				continue
			}
			to, err := e.spaces[0].root.Readlink(name)
			if err != nil {
				continue
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(e.abs(name)), to)
			}
			real, _ := filepath.EvalSymlinks(e.abs(name))
			if isBelow(e.Workspace, cmp.Or(real, to)) || !slices.ContainsFunc(e.was.Outside, func(dir string) bool {
				return isBelow(dir, to) || real != "" && isBelow(dir, real)
			}) {
				continue
			}
			unlock(e.spaces[0].root, at)
			if err := e.spaces[0].root.Remove(name); err != nil {
				e.errs = append(e.errs, fmt.Errorf("remove the link %s: %w", plaintext.Line(name), err))
			}
			e.changes.Links = append(e.changes.Links, name)
		}
	}
}

func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// aside renames a setting and records it in renames.
func (e *end) aside(s *space, name string, renames *[]string) (renamed bool) {
	return e.rename(s, name, path.Dir(name), path.Base(name)+suffix, renames)
}

func (e *end) rename(s *space, name, dir, as string, renames *[]string) (renamed bool) {
	if err := rename(s.root, name, dir, as); err != nil {
		e.errs = append(e.errs, fmt.Errorf("disarm %s: %w", plaintext.Line(name), err))
		return false
	}
	*renames = append(*renames, e.shown(s, name))
	return true
}

// Aside renames an entry so that no program obeys it.
func Aside(root *os.Root, name string) error {
	return rename(root, name, path.Dir(name), path.Base(name)+suffix)
}

// unlock restores permissions of directories that a command removed.
func unlock(root *os.Root, dirs ...string) {
	for _, at := range dirs {
		if info, err := root.Lstat(at); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
			_ = root.Chmod(at, info.Mode().Perm()|0o700) // what needs them reports a failure
		}
	}
}

// rename moves an entry to a free name in dir.
func rename(root *os.Root, name, dir, as string) error {
	unlock(root, path.Dir(name), dir, name)
	from, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer from.Close() // opened for reading
	to, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer to.Close() // opened for reading
	for n := range 1000 {
		free := as
		if n > 0 {
			free += "." + strconv.Itoa(n)
		}
		if err := renameIn(from, path.Base(name), to, free); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return fs.ErrExist
}

// repositoriesNow disarms new settings in git directories.
func (e *end) repositoriesNow() {
	now, tops, newTrees := e.repositories(e.was.Repos), e.tops(), map[string]bool{}
	for name, to := range e.pointers() { // a new work tree here adds an entry to a repository elsewhere
		newTrees[to] = newTrees[to] || e.was.Pointers[name] != to && path.Base(filepath.Dir(to)) == "worktrees"
	}
	e.repos = now
	for _, at := range slices.Sorted(maps.Keys(now)) {
		s, name := e.space(at)
		was := e.was.Repos[at]
		top, intact := e.was.Tops[at]
		if intact = intact && (top.Ino == 0 || top.same(tops[at])); was == nil || !intact && (e.own(at) || newTrees[at]) {
			was = &repo{} // it is another directory
		}
		if e.held != nil {
			if e.own(at) && !intact {
				e.changes.Lost = append(e.changes.Lost, at)
			}
			intact = e.held(at)
		}
		e.disarm(s, name, was, now[at], intact)
		e.plans(s, name, was)
		for text := range now[at].Passed {
			if !was.Passed[text] {
				e.changes.Hiding = append(e.changes.Hiding, text)
			}
		}
	}
}

// disarm renames changed settings. intact means that mounts protected some of them, or that those were restored.
func (e *end) disarm(s *space, name string, was, now *repo, intact bool) {
	at := filepath.Join(s.dir, filepath.FromSlash(name))
	if e.allowed(at) {
		return
	}
	if d := e.was.Dirs[name]; s.dir == e.Workspace && d != nil && d.Named && !d.Bare && !offlimits.IsGit(path.Base(name)) && d == e.before(name) {
		if _, err := stampOf(s.top, join(name, "HEAD")); err == nil { // a user's directory: its config is not git's
			e.aside(s, join(name, "HEAD"), &e.changes.Disarmed)
			return
		}
	}
	restored := e.held != nil && intact
	for _, entry := range slices.Sorted(maps.Keys(now.Armed)) {
		full := join(name, entry)
		// It must have existed before this command, and before one that was still running when this one began.
		settled := was.Armed[entry] != "" && slices.Contains(e.settled, filepath.Join(at, entry))
		safe := settled || restored && (entry == "config" || entry == "hooks") ||
			intact && entry == "hooks" && now.Mounted[entry].same(was.Mounted[entry])
		if now.Armed[entry] == was.Armed[entry] || safe || e.allowed(filepath.Join(at, entry)) {
			continue
		}
		if text, err := safeopen.ReadFileIn(s.root, full, 100); entry == "commondir" && err == nil &&
			path.Base(path.Dir(name)) == "worktrees" && (len(text) == 0 || string(bytes.TrimSpace(text)) == "../..") {
			continue // as git writes it, or is about to
		}
		moved := e.aside(s, full, &e.changes.Disarmed)
		if moved && entry == "commondir" && path.Base(path.Dir(name)) == "worktrees" { // a work tree needs one
			e.errs = append(e.errs, Replace(s.root, full, []byte("../..\n"), 0o644))
		}
	}
	for entry, st := range was.Mounted {
		now := now.Mounted[entry]
		if intact && !restored && entry != "hooks" && now.Ino != 0 && !now.same(st) && !e.allowed(filepath.Join(at, entry)) {
			e.aside(s, join(name, entry), &e.changes.Disarmed)
		}
	}
}

// plans removes lines from plans that start programs and were not there before. A plan that it cannot check is renamed.
func (e *end) plans(s *space, name string, was *repo) {
	for _, dir := range []string{"rebase-merge", "rebase-apply", "sequencer"} {
		full := join(name, dir)
		if st, err := stampOf(s.top, full); err == nil && !st.Dir { // a link points to an unchecked place
			e.aside(s, full, &e.changes.Runs)
		}
	}
	for _, file := range plans() {
		full := join(name, file)
		st, err := stampOf(s.top, full)
		if err != nil {
			continue
		}
		text, err := safeopen.ReadFileIn(s.root, full, maxPlan)
		e.miss(err)
		kept := tame(text, was.Runs)
		switch {
		case Short(err), err != nil && st.File && st == was.Unread[file], err == nil && st.File && bytes.Equal(kept, text):
		case err != nil || !st.File:
			e.aside(s, full, &e.changes.Runs)
		default:
			if err := Replace(s.root, full, kept, st.Perm); err != nil {
				e.errs = append(e.errs, err)
				continue
			}
			e.changes.Runs = append(e.changes.Runs, e.shown(s, full))
		}
	}
}

// Replace atomically replaces the content of a file. Root gives it to the owner of its directory.
func Replace(root *os.Root, name string, text []byte, perm fs.FileMode) error {
	temp := name + "." + rand.Text()
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	give(f, root, path.Dir(name))
	if err = errors.Join(err, f.Chmod(perm), f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	return err
}
