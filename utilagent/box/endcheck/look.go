package endcheck

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/util/gitindex"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// stamp identifies a version of a file or directory. Programs cannot forge Changed.
type stamp struct {
	Dev, Ino                uint64
	Changed, Modified, Size int64
	Perm                    fs.FileMode
	Dir, File               bool
	Born                    int64 // set by bornOf
}

// same reports whether two stamps belong to the same file, changed or not.
func (s stamp) same(other stamp) bool {
	return s.Dev == other.Dev && s.Ino == other.Ino && s.Ino != 0 && s.Born == other.Born
}

// dir describes a directory.
type dir struct {
	Stamp   stamp
	Noted   int64    // when it was read, by [fileClock]
	Dirs    []string // subdirectories to scan
	Git     []string // spellings of .git
	Obeyed  []string
	Secrets []string
	Links   []string // symbolic links
	Bare    bool     // git accepts it as a repository
	Named   bool     // it contains a name that would be a setting in a repository
}

// tick is the time within which a file system may give two changes the same timestamp.
const tick = 50 * time.Millisecond

func (d *dir) racy() bool {
	return d.Stamp.Ino == 0 || d.Noted-max(d.Stamp.Changed, d.Stamp.Modified) < int64(tick)
}

// look is one scan of a workspace.
type look struct {
	*Before
	spaces []*space
	dirs   map[string]*dir
	cut    map[string]bool // directories skipped over the limit
	closed []string        // unreadable directories
	over   map[string]bool // parts of git directories over a limit
	read   int             // number of directories and indexes of git read
	atEnd  bool            // the command has ended: restore permissions that it removed
	short  error           // reading failed for lack of descriptors or memory, so the scan is incomplete
}

// miss records an error that makes the scan incomplete. Others mean that a file was removed or closed.
func (l *look) miss(err error) {
	if Short(err) {
		l.short = cmp.Or(l.short, err)
	}
}

// Short reports whether an error means that there are too few descriptors or too little memory.
func Short(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// space is a directory that the command could write.
type space struct {
	dir  string
	root *os.Root
	top  *os.File // the same directory, for stampOf
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
		l.miss(err)
	}
	return l, nil
}

// openRoot opens a directory. A link on the way is an error, since the command may not write its target.
func openRoot(dir string) (*os.Root, error) {
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return nil, cmp.Or(err, fmt.Errorf("a symbolic link points to %s", plaintext.Line(dir)))
	}
	return os.OpenRoot(dir)
}

func (l *look) close() {
	for _, s := range l.spaces {
		_ = errors.Join(s.top.Close(), s.root.Close()) // opened for reading
	}
}

// space returns the last space that contains an absolute path, and the path relative to it. The workspace is first.
func (l *look) space(at string) (*space, string) {
	for _, s := range slices.Backward(l.spaces) {
		if rel, err := filepath.Rel(s.dir, at); err == nil && filepath.IsLocal(rel) {
			return s, filepath.ToSlash(rel)
		}
	}
	return nil, ""
}

// maxDepth bounds the depth of the scan, since each directory is opened from the top.
const maxDepth = 100

// walk scans up to most directories of the workspace, node_modules last. It reads only those that differ from known.
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
		if errors.Is(err, syscall.ENAMETOOLONG) {
			l.cut[at] = true
		}
		if err != nil || !st.Dir {
			continue
		}
		d := known[at]
		if d == nil || d.Stamp != st || d.racy() {
			l.read++
			if d, err = l.note(top, at, st); err != nil {
				l.closed = append(l.closed, at)
				l.miss(err)
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

// with returns the sorted paths of the directories that match. There are few.
func (l *look) with(match func(*dir) bool) (paths []string) {
	for at, d := range l.dirs {
		if match(d) {
			paths = append(paths, at)
		}
	}
	slices.Sort(paths)
	return paths
}

// note reads a directory.
func (l *look) note(top *space, at string, st stamp) (*dir, error) {
	if l.atEnd && st.Perm&0o500 != 0o500 {
		_ = top.root.Chmod(at, st.Perm|0o700) // otherwise its contents stay invisible
	}
	f, err := top.root.Open(at)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
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
			if e.IsDir() && p != ".uwf" { // uwf itself writes there concurrently
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

// keptBy reports whether a name in an agent's directory holds work products.
func keptBy(p string) bool { return p == "worktrees" || p == "node_modules" }

// obeyedAbove reports whether agents obey a directory or one of its parents.
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

// isSecret reports whether a name suggests a file with keys for a program's environment.
func isSecret(p string) bool {
	rest, ok := strings.CutPrefix(p, ".env")
	if !ok || rest != "" && rest[0] != '.' {
		return false
	}
	return !slices.ContainsFunc([]string{"example", "sample", "template", "dist", "defaults"}, func(end string) bool { return strings.HasSuffix(rest, end) })
}

// shape records the entries by which git recognizes a git directory, whatever its name. Git looks for one in
// the directory in which it starts and in all parents, and then obeys its config and hooks.
type shape struct{ head, objects, refs, common bool }

// add counts an entry by its normalized name.
func (s *shape) add(name string) {
	switch name {
	case "head":
		s.head = true
	case "objects":
		s.objects = true
	case "refs":
		s.refs = true
	case "commondir": // refers to the directory with objects and refs
		s.common = true
	}
}

// isGit reports whether git accepts the directory as a repository.
func (s shape) isGit() bool { return s.head && (s.common || s.objects && s.refs) }

// Bounds for scanning repositories.
const (
	maxRepositories = 20_000
	maxModules      = 100_000 // directories scanned for the repositories of submodules
	maxEntries      = 5_000   // entries per directory
	maxPassed       = 300_000
	maxPlan         = 16 << 20 // a rebase of 200,000 commits
)

// armed returns the names in a git directory that determine what git runs.
func armed() []string {
	return []string{"config", "config.worktree", "hooks", "commondir", "remotes", "branches"}
}

// sparse matches a config that contains only sparse checkout settings, as git creates for each work tree.
var sparse = lazyregexp.New(`^(\[(core|index)\]\n|\t(sparseCheckout|sparseCheckoutCone|sparse) = (true|false)\n)*$`)

// repo describes a git directory.
type repo struct {
	Armed   map[string]string // fingerprint of each name; "" if absent
	Mounted map[string]stamp  // directories over which there are mounts, until another program replaces them
	Runs    map[string]bool   // lines of unfinished plans that start programs
	Unread  map[string]stamp  // plans that could not be read, for example because of their size
	Source  string            // fingerprint of the files that determine Passed
	Passed  map[string]bool   // files whose changes git ignores, and objects that git replaces
}

// tops returns the stamps of the workspace's git directories.
func (l *look) tops() map[string]stamp {
	all := map[string]stamp{}
	for _, s := range l.spaces[1:] {
		all[s.dir], _ = stampOf(s.top, ".") // already open
	}
	return all
}

// lost returns the workspace's git directories that are no longer repositories.
func (l *look) lost() map[string]bool {
	all := map[string]bool{}
	for _, at := range l.GitDirs {
		for _, name := range []string{"HEAD", "objects", "refs"} {
			if _, err := os.Lstat(filepath.Join(at, name)); err != nil {
				all[at] = true
			}
		}
	}
	return all
}

// own reports whether a path is one of the workspace's git directories.
func (l *look) own(at string) bool { return slices.Contains(l.GitDirs, at) }

// pointers returns the targets of the .git files and links in the workspace.
func (l *look) pointers() map[string]string {
	found := map[string]string{}
	for at, d := range l.dirs {
		for _, name := range d.Git {
			full := join(at, name)
			if st, err := stampOf(l.spaces[0].top, full); err == nil && !st.Dir {
				to, ok, err := pointerTarget(l.abs(full))
				if l.miss(err); ok {
					found[full] = to
				}
			}
		}
	}
	return found
}

// pointerTarget returns the resolved target of a .git file or link, or "" if it does not exist.
func pointerTarget(file string) (to string, ok bool, err error) {
	if _, err := os.Readlink(file); err == nil {
		real, _ := filepath.EvalSymlinks(file)
		return real, true, nil
	}
	text, err := safeopen.ReadFile(file, 8<<10, safeopen.NoFollow)
	to, ok = strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if err != nil || !ok {
		return "", false, err
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	real, _ := filepath.EvalSymlinks(to) // "" if the target does not exist
	return real, true, nil
}

// repositories describes all git directories that a command could reach, by absolute path.
func (l *look) repositories(before map[string]*repo) map[string]*repo {
	found, looked := map[string]*repo{}, 0
	pointers := slices.Collect(maps.Values(l.pointers()))
	var add, inner func(at string)
	inner = func(at string) {
		s, name := l.space(at)
		if looked++; s == nil || looked > maxModules {
			l.over[at] = s != nil
			return
		}
		for _, entry := range l.entries(s, name) {
			full := filepath.Join(at, entry)
			if st, err := stampOf(s.top, join(name, entry)); err != nil || !st.Dir {
				continue
			}
			if filepath.Base(at) == "worktrees" && l.atEnd && before[full] == nil && !slices.Contains(pointers, full) {
				// Another process just created it for a work tree elsewhere. Its submodules are not the command's.
				found[full] = l.repository(s, join(name, entry), nil)
				continue
			}
			if _, err := stampOf(s.top, join(name, entry)+"/HEAD"); err == nil {
				add(full)
			} else {
				inner(full)
			}
		}
	}
	add = func(at string) {
		s, name := l.space(at)
		if s == nil || found[at] != nil {
			return
		}
		if len(found) >= maxRepositories {
			l.over[at] = true
			return
		}
		if st, err := stampOf(s.top, name); err != nil || !st.Dir {
			return
		}
		if l.atEnd {
			unlock(s.root, name, join(name, "hooks"), join(name, "modules"), join(name, "worktrees"), join(name, "rebase-merge"), join(name, "sequencer"))
		}
		found[at] = l.repository(s, name, before[at])
		for _, entry := range append(l.entries(s, name), ".") { // git looks for a repository there, too
			if st, err := stampOf(s.top, join(name, entry)); err != nil || !st.Dir {
				continue
			}
			for _, inside := range []string{entry, path.Join(entry, ".git")} {
				if id := l.outsidePointer(s, join(name, inside)); id != "" {
					found[at].Armed[inside] = id
				} else if l.accepted(s, join(name, inside)) {
					add(filepath.Join(at, filepath.FromSlash(inside)))
				}
			}
		}
		for _, entry := range []string{"modules", "worktrees"} {
			inner(filepath.Join(at, entry))
		}
		if filepath.Base(filepath.Dir(at)) == "worktrees" { // its settings are in the repository above
			add(filepath.Dir(filepath.Dir(at)))
		}
	}
	for _, s := range l.spaces[1:] {
		add(s.dir)
	}
	for _, at := range l.with(func(d *dir) bool { return d.Bare || len(d.Git) > 0 }) {
		d := l.dirs[at]
		for _, name := range d.Git {
			add(l.abs(join(at, name)))
		}
		if d.Bare {
			add(l.abs(at))
		}
	}
	for _, to := range pointers {
		if to != "" {
			add(to)
		}
	}
	return found
}

// accepted reports whether git accepts a directory as a repository.
func (l *look) accepted(s *space, name string) bool {
	has := func(entry string) bool { return there(s, join(name, entry)) }
	return there(s, name) && shape{has("HEAD"), has("objects"), has("refs"), has("commondir")}.isGit()
}

// outsidePointer returns the fingerprint of a .git file or link that points to an unchecked place, or "".
func (l *look) outsidePointer(s *space, name string) string {
	st, err := stampOf(s.top, name)
	if err != nil || st.Dir {
		return ""
	}
	to, _, err := pointerTarget(filepath.Join(s.dir, filepath.FromSlash(name)))
	l.miss(err)
	if in, _ := l.space(to); in != nil || to == "" {
		return ""
	}
	return fmt.Sprint(st)
}

func (l *look) repository(s *space, name string, before *repo) *repo {
	r := &repo{Armed: map[string]string{}, Runs: map[string]bool{}, Unread: map[string]stamp{}}
	for _, entry := range armed() {
		if id := l.fingerprint(s, join(name, entry)); id != "" {
			r.Armed[entry] = id
		}
	}
	for _, file := range plans() {
		text, err := safeopen.ReadFileIn(s.root, join(name, file), maxPlan)
		l.miss(err)
		if st, gone := stampOf(s.top, join(name, file)); err != nil && gone == nil {
			r.Unread[file] = st
		}
		for line := range bytes.Lines(text) {
			if runs().Match(line) {
				r.Runs[string(bytes.TrimSpace(line))] = true
			}
		}
	}
	at := filepath.Join(s.dir, filepath.FromSlash(name))
	tree := filepath.Join(l.Workspace, ".git")
	to, _, _ := pointerTarget(tree) // pointers reports errors
	indexed := at == tree || at == to
	if !indexed && !l.own(at) {
		return r
	}
	r.Mounted = map[string]stamp{}
	for _, entry := range []string{"hooks", "info", "objects/info"} {
		if st, err := bornOf(s.top, join(name, entry)); err == nil {
			r.Mounted[entry] = st
		}
	}
	for _, file := range []string{"index", "refs/replace", "packed-refs"} {
		st, _ := stampOf(s.top, join(name, file))
		r.Source += fmt.Sprintln(file, st)
	}
	if before != nil && before.Source == r.Source {
		r.Passed = before.Passed
	} else {
		l.read++
		r.Passed = l.passed(s, name, indexed)
	}
	return r
}

// fingerprint returns the fingerprint of a setting, or "" if there is nothing that git would run. Git runs no
// sample hooks.
func (l *look) fingerprint(s *space, name string) string {
	st, err := stampOf(s.top, name)
	if err != nil {
		return ""
	}
	if path.Base(name) == "config.worktree" {
		if text, err := safeopen.ReadFileIn(s.root, name, 1<<10); err == nil && sparse().Match(text) {
			return ""
		}
	}
	if !st.Dir {
		return fmt.Sprint(st)
	}
	names := l.entries(s, name)
	if names = slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, ".sample") }); len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	var all strings.Builder
	for _, entry := range names {
		st, _ := stampOf(s.top, join(name, entry))
		fmt.Fprintln(&all, entry, st)
	}
	return all.String()
}

// entries returns the names in a directory, or nil if it cannot be read.
func (l *look) entries(s *space, name string) (names []string) {
	f, err := s.root.Open(name)
	if err != nil {
		l.miss(err)
		return nil
	}
	defer f.Close() // opened for reading
	names, err = f.Readdirnames(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	if len(names) == maxEntries {
		l.over[filepath.Join(s.dir, filepath.FromSlash(name))] = true
	}
	slices.Sort(names)
	return names
}

// passed returns files whose changes git status and git diff do not show, and replaced objects.
func (l *look) passed(s *space, name string, indexed bool) map[string]bool {
	all := map[string]bool{}
	for _, entry := range l.entries(s, join(name, "refs/replace")) {
		all[l.shown(s, name)+"/refs/replace/"+entry] = true
	}
	packed, _ := safeopen.ReadFileIn(s.root, join(name, "packed-refs"), gitindex.MaxBytes) // the file may be absent
	for line := range bytes.Lines(packed) {
		if _, entry, found := bytes.Cut(bytes.TrimSpace(line), []byte(" refs/replace/")); found {
			all[l.shown(s, name)+"/refs/replace/"+string(entry)] = true
		}
	}
	if !indexed { // the index belongs to another work tree
		return all
	}
	index, _ := safeopen.ReadFileIn(s.root, join(name, "index"), gitindex.MaxBytes) // the file may be absent
	for _, e := range gitindex.Entries(index) {
		sparse := e.Passed == gitindex.Skipped && !there(l.spaces[0], e.Name)
		if e.Passed != "" && e.Name != "" && !sparse && len(all) < maxPassed {
			all[e.Name+" ("+e.Passed+")"] = true
		}
	}
	return all
}

func there(s *space, name string) bool {
	_, err := stampOf(s.top, name)
	return err == nil
}

// shown returns a name for display, relative to the workspace if possible.
func (l *look) shown(s *space, name string) string {
	full := filepath.Join(s.dir, filepath.FromSlash(name))
	if rel, err := filepath.Rel(l.Workspace, full); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return full
}

// plans returns the files of a git directory that control the next steps of an unfinished rebase or
// cherry-pick.
func plans() []string {
	return []string{
		"rebase-merge/git-rebase-todo", "rebase-merge/git-rebase-todo.backup", "rebase-merge/done",
		"rebase-apply/git-rebase-todo", "rebase-apply/git-rebase-todo.backup", "rebase-apply/done", "sequencer/todo",
	}
}

// runs matches a line of a plan that starts a program.
var runs = lazyregexp.New(`^[ \t]*(exec|x)[ \t\r\n]`)

// tame removes the lines that start programs, except those in known.
func tame(text []byte, known map[string]bool) (kept []byte) {
	for line := range bytes.Lines(text) {
		if !runs().Match(line) || known[string(bytes.TrimSpace(line))] {
			kept = append(kept, line...)
		}
	}
	return kept
}
