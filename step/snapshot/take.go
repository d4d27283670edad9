package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Bounds of a snapshot.
const (
	patience     = 2 * time.Minute
	maxUntracked = 50_000  // untracked files
	maxNew       = 1 << 30 // their total size in bytes
	maxListed    = 20      // paths in Taken.Left
)

// Take takes a snapshot of the current files. If it fails, nothing references a new one. It removes leftovers
// of a killed process.
func Take(ctx context.Context, e env.Env, s Spec) (Taken, error) {
	taken, err := take(ctx, e.Environ, s, recall(s))
	if err != nil && ctx.Err() == nil && !errors.Is(err, errWaits) {
		taken, err = take(ctx, e.Environ, s, indexNote{})
	}
	return taken, err
}

// errUnsound means that the index is damaged. Git then compares all files with it, which yields complete trees.
var errUnsound = errors.New("the index does not have its checksum")

// take takes a snapshot. known is the note of the index, if any. Git doesn't run if nothing it looked at has changed.
func take(ctx context.Context, environ []string, s Spec, known indexNote) (taken Taken, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errWaits)
	defer cancel()
	index, next := s.Index, s.Index+".next" // replaces the index once the objects to which it refers are durable
	if err := errors.Join(scratch(next), os.RemoveAll(index+lockSuffix)); err != nil {
		return Taken{}, err
	}
	s.Tree = known.Tree
	n, v := indexNote{Tree: s.Tree, Looked: changeTime(s.Root), Out: s.Redacted}, view{partial: true}
	if s.Tree != "" {
		if v, err = look(environ, s, known); err != nil {
			return Taken{}, err
		}
	}
	if v.isSame() {
		return Taken{Tree: s.Tree}, nil
	}
	defer func() { _ = os.Remove(next) }()
	g := of(environ, s).in(s.Git, s.Root, next)
	if err := linkIndex(index, next); err != nil {
		return Taken{}, err
	}
	s.Index = next
	found, err := list(ctx, g, s, v)
	if err != nil {
		return Taken{}, err
	}
	defer func() { taken.Left, taken.Note = found.left, found.note() }()
	mark := func(tree protocol.Tree) {
		if n.Tree = tree; len(found.left)+found.more == 0 && !found.conflicted {
			n.mark(ctx, g, s, v)
		}
	}
	if len(found.gone)+len(found.put) == 0 && s.Tree != "" {
		mark(s.Tree)
	} else if err = g.add(ctx, s, found, mark); err == nil {
		err = os.Rename(next, index)
	}
	if err != nil {
		return taken, err
	}
	if taken.Tree = n.Tree; taken.Tree != s.Tree {
		if err := addToList(ctx, s.Git, path.Base(s.Ref), taken.Tree); err != nil {
			return taken, err
		}
	}
	n.Index, n.Git = identity(index), identity(filepath.Join(s.Git, "HEAD"))
	return taken, durable.ReplaceJSON(durable.OS(), index+noteSuffix, n)
}

func (v view) isSame() bool { return !v.partial && len(v.changed)+len(v.doubtful)+len(v.read) == 0 }

// newObjects returns a directory for the new objects of a snapshot, and a function to call when they have been moved. The
// directory stays, because file systems are slow to create directories and to fill them. A second snapshot at the same
// time uses another directory. Files in it were left by a killed process.
func newObjects(store, thread string) (dir string, release func(), err error) {
	dir = filepath.Join(store, "objects", "new")
	held, err := durable.TryLock(filepath.Join(store, "uwf-new.lock"))
	release = func() { _ = held.Unlock() }
	if errors.Is(err, durable.ErrLocked) {
		dir += "-" + thread
		release, err = func() { _ = os.RemoveAll(dir) }, os.RemoveAll(dir)
	}
	if err != nil {
		return "", nil, err
	}
	err = os.MkdirAll(dir, 0o700)
	left, lost := filesIn(dir)
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err = errors.Join(err, lost); err != nil {
		release()
	}
	return dir, release, err
}

// filesIn lists the files below a directory.
func filesIn(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// add adds the changes to the index, and calls added with the resulting tree while it flushes the new objects.
func (g git) add(ctx context.Context, s Spec, found *changes, added func(protocol.Tree)) error {
	apart, release, err := newObjects(s.Git, path.Base(s.Ref))
	if err != nil {
		return err
	}
	defer release()
	g = g.with([][2]string{{"core.fsync", "none"}})
	objects := filepath.Join(s.Git, "objects")
	g.env = append(g.env, "GIT_OBJECT_DIRECTORY="+apart, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoted(objects))
	const maxArguments = 8 << 10          // bytes; Windows allows 32 kB
	gone, first := found.gone, []string{} // first: a link might have replaced a directory
	if len(gone) > 0 && len(found.put) > 0 && len(joined(gone)) < maxArguments {
		for _, path := range gone { // in the same command, because each writes the whole index
			first = append(first, "--force-remove", "./"+path)
		}
		gone, first = nil, append(first, "--no-force-remove")
	}
	for _, change := range []struct {
		input []string
		args  []string
	}{
		{gone, []string{"--force-remove", "-z", "--stdin"}},
		// Without times, git reads the file. The mode and the content of the old entry still count: core.fileMode,
		// core.symlinks and core.autocrlf depend on them.
		{found.doubtful, []string{"-z", "--index-info"}},
		{found.put, append(first, "--add", "--remove", "--replace", "-z", "--stdin")},
	} {
		if len(change.input) > 0 {
			if _, err := g.run(ctx, joined(change.input), append([]string{"update-index"}, change.args...)...); err != nil {
				return err
			}
		}
	}
	tree, ok := writeTree(s, apart, found.gone, found.put)
	if !ok {
		sum, err := g.line(ctx, append([]string{"write-tree"}, missing(s, "--missing-ok")...)...)
		if err != nil {
			return err
		}
		tree = treeOf(sum)
	}
	var end sync.WaitGroup
	end.Go(func() { added(tree) })
	err = moveObjects(ctx, apart, objects)
	end.Wait()
	return err
}

// quoted returns a path with any characters for a list of paths, as git reads it.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// atOnce is the number of files above which flushing the whole file system is faster than flushing each file.
const atOnce = 200

// moveObjects flushes the objects in a directory and moves them to another.
func moveObjects(ctx context.Context, from, to string) error {
	objects, err := filesIn(from)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(objects, func(o string) bool { return filepath.Ext(o) == ".pack" }) { // git packs large files
		held, err := durable.Lock(ctx, filepath.Join(filepath.Dir(to), tidyLock)) // protects a pack without an index
		if err != nil {
			return err
		}
		defer func() { _ = held.Unlock() }()
	}
	if err = errors.ErrUnsupported; len(objects) > atOnce {
		err = durable.SyncAll(from)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = atATime(objects, durable.OS().SyncFile)
	}
	var dirs []string
	for _, object := range slices.Backward(objects) { // a pack before its index
		if err != nil {
			return err
		}
		dir := filepath.Join(to, filepath.Base(filepath.Dir(object)))
		if !slices.Contains(dirs, dir) {
			dirs, err = append(dirs, dir), os.MkdirAll(dir, 0o700)
		}
		err = errors.Join(err, os.Rename(object, filepath.Join(dir, filepath.Base(object))))
	}
	return errors.Join(err, atATime(dirs, durable.OS().SyncDir))
}

// atATime flushes many paths at a time: the disk then writes its cache once for all of them, not once for each.
func atATime(paths []string, flush func(string) error) error {
	const most = 32
	errs := make([]error, most)
	var flushes sync.WaitGroup
	for n := range most {
		flushes.Go(func() {
			for i := n; i < len(paths); i += most {
				errs[n] = errors.Join(errs[n], flush(paths[i]))
			}
		})
	}
	flushes.Wait()
	return errors.Join(errs...)
}

// missing returns the option that allows a tree to reference objects missing from the repository.
func missing(s Spec, option string) []string {
	if s.Partial {
		return []string{option}
	}
	return nil
}

// treeOf converts git's name of a tree to the form in nodes.
func treeOf(sum string) protocol.Tree {
	if len(sum) == 64 {
		return protocol.Tree("sha256:" + sum)
	}
	return protocol.Tree("sha1:" + sum)
}

// sumOf converts a tree to git's name.
func sumOf(t protocol.Tree) string {
	_, sum, _ := strings.Cut(string(t), ":")
	return sum
}

func joined(paths []string) []byte {
	return []byte(strings.Join(paths, "\x00") + "\x00")
}

// changes lists the files that differ from the index.
type changes struct {
	gone, put  []string // files to remove from the index, and then those to add
	doubtful   []string // entries of files to add that git must read
	left       []string
	links      []string // submodules that differ from the index, and nested repositories
	more       int      // number of left-out paths not listed
	conflicted bool
}

func (c *changes) leave(path string) {
	if len(c.left) < maxListed {
		c.left = append(c.left, strings.ToValidUTF8(strings.TrimSuffix(path, "/"), "\uFFFD"))
		return
	}
	c.more++
}

// link records a nested repository. Git gets these as arguments.
func (c *changes) link(path string) {
	if len(c.links) > 2*maxListed {
		c.leave(path)
		return
	}
	c.links = append(c.links, strings.TrimSuffix(path, "/"))
}

func (c *changes) note() string {
	var notes []string
	if c.more > 0 {
		notes = append(notes, fmt.Sprintf("%d more paths were left out", c.more))
	}
	if c.conflicted {
		notes = append(notes, "a merge is unfinished: files have conflict markers")
	}
	return strings.Join(notes, "; ")
}

// list finds the changes that can be stored, given what a look has found.
func list(ctx context.Context, g git, s Spec, v view) (*changes, error) {
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	var diff, others []byte
	c := &changes{}
	switch {
	case v.partial:
		diff, others, err = g.all(ctx)
	case len(v.added) > 0:
		others, err = g.run(ctx, nil, append([]string{"ls-files", "-o", "--exclude-standard", "-z", "--"}, v.added...)...)
	}
	if err != nil {
		return nil, err
	}
	tracked, _, err := differences(diff)
	if err != nil {
		return nil, err
	}
	for _, d := range tracked {
		c.change(root, d.path, d.status, d.isLink(), s)
	}
	if !v.partial {
		for _, path := range v.changed {
			c.change(root, path, 0, false, s)
		}
	}
	for _, entry := range v.doubtful {
		n := len(c.put)
		_, path, _ := strings.Cut(entry, "\t")
		if c.change(root, path, 0, false, s); len(c.put) > n {
			c.doubtful = append(c.doubtful, entry)
		}
	}
	barred, err := c.untracked(root, fields(others), s)
	if err != nil {
		return nil, err
	}
	return c, c.leaveUnknown(ctx, g, s, barred)
}

// all lists the files that differ from the index, as diff-files prints them, and those that aren't in it.
func (g git) all(ctx context.Context) (diff, others []byte, err error) {
	var lost error
	var list sync.WaitGroup
	list.Go(func() { others, lost = g.run(ctx, nil, "ls-files", "-o", "--exclude-standard", "-z") })
	diff, err = g.run(ctx, nil, "diff-files", "--raw", "--no-renames", "-z", "--ignore-submodules=dirty")
	list.Wait()
	return diff, others, cmp.Or(err, lost)
}

// change records a file in the index that may have changed. status is git's, or 0 if unknown.
func (c *changes) change(root *os.Root, path string, status byte, isLink bool, s Spec) {
	unmerged := status == 'U'
	c.conflicted = c.conflicted || unmerged
	switch info, err := root.Lstat(filepath.FromSlash(path)); {
	case skipped(path, s.Skip), err == nil && isOwn(info, s):
	case isLink:
		c.link(path)
	case err != nil && unmerged, status == 'D', status == 0 && (err != nil || info.IsDir()):
		c.gone = append(c.gone, path)
	case err == nil && !readable(root, path, info):
		c.leave(path)
	case !slices.Contains(c.put[max(0, len(c.put)-1):], path): // git lists unmerged paths twice
		c.put = append(c.put, path)
	}
}

// untracked handles the files in ls-files output that the index doesn't have. barred lists those that count
// only if the user's git tracks them.
func (c *changes) untracked(root *os.Root, paths []string, s Spec) (barred []string, err error) {
	if len(paths) > maxUntracked {
		return nil, fmt.Errorf("%d new files, but at most %d can be kept; add files to leave out to .gitignore",
			len(paths), maxUntracked)
	}
	most, sum := s.MaxFile, int64(0)
	if most == 0 {
		most = DefaultMaxFile
	}
	for _, path := range paths {
		info, err := root.Lstat(filepath.FromSlash(path))
		switch {
		case skipped(path, s.Skip), errors.Is(err, fs.ErrNotExist), err == nil && isOwn(info, s): // or deleted in the meantime
		case strings.HasSuffix(path, "/") && err == nil:
			c.link(path)
		case err != nil, !readable(root, path, info):
			c.leave(path)
		case info.Size() > most, skipped(path, s.DenyRead), skipped(path, s.Redacted):
			barred = append(barred, path)
		default:
			c.put = append(c.put, path)
			if sum += info.Size(); sum > maxNew {
				return nil, fmt.Errorf("new files have more than %d MB; add files to leave out to .gitignore", maxNew>>20)
			}
		}
	}
	return barred, nil
}

func isOwn(info fs.FileInfo, s Spec) bool {
	return len(s.Outputs) > 0 && slices.Contains(s.Outputs, safeopen.Identity(info))
}

// skipped reports whether a path, or one of its parents, is left out.
func skipped(path string, skip []string) bool {
	return slices.ContainsFunc(skip, func(s string) bool {
		return path == s || strings.HasPrefix(path, s+"/") || path == s+"/"
	})
}

// readable reports whether git can read a file. A single unreadable file makes git fail for all of them.
func readable(root *os.Root, path string, info fs.FileInfo) bool {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return true
	case info.IsDir(): // replaced a file: its contents are listed separately
		return true
	case !info.Mode().IsRegular() || bytes.ContainsRune([]byte(path), '\x00'):
		return false
	}
	f, err := safeopen.OpenIn(root, filepath.FromSlash(path))
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// Has reports whether our git directory has a tree.
func Has(ctx context.Context, e env.Env, store string, tree protocol.Tree) bool {
	if !tree.Valid() {
		return false
	}
	sum := sumOf(Substitute(ctx, e, store, tree))
	if info, err := os.Lstat(loosePath(filepath.Join(store, "objects"), sum)); err == nil && info.Mode().IsRegular() {
		return true
	}
	kind, err := inStore(e, store).line(ctx, "cat-file", "-t", sum)
	return err == nil && kind == "tree"
}

// A snapshot never reads a submodule. Its commit is the one in the newest commit of the work tree; an
// uncommitted update is left out.

// Gitlink is the mode of a submodule.
const Gitlink = "160000"

func (d difference) isLink() bool { return d.mode == Gitlink || d.was == Gitlink }

// leaveUnknown leaves out barred files that the user's git doesn't track, and nested repositories that differ
// from the newest commit of the work tree.
func (c *changes) leaveUnknown(ctx context.Context, g git, s Spec, barred []string) error {
	if len(barred)+len(c.links) == 0 {
		return nil
	}
	user := newGit(g.env, s.Root)
	if len(barred) > 0 {
		out, err := user.run(ctx, nil, "ls-files", "-z")
		if err != nil {
			out = nil
		}
		tracked := fields(out) // sorted
		for _, path := range barred {
			if _, is := slices.BinarySearch(tracked, path); is {
				c.put = append(c.put, path)
			} else {
				c.leave(path)
			}
		}
	}
	if len(c.links) > 0 {
		left, err := user.status(ctx, c.links...)
		if err != nil {
			left = c.links // git failed
		}
		for _, path := range left {
			c.leave(path)
		}
	}
	return ctx.Err()
}

// status returns the paths that differ from the newest commit, limited to the paths in below, if any.
func (g git) status(ctx context.Context, below ...string) (paths []string, err error) {
	args := []string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal",
		"--ignore-submodules=dirty", "--"}
	out, err := g.run(ctx, nil, append(args, below...)...)
	for _, entry := range fields(out) {
		paths = append(paths, entry[min(len(entry), len("XY ")):])
	}
	return paths, err
}

// Status returns the paths that differ from the newest commit of a work tree, limited to the paths in below,
// if any.
func (r Repo) Status(ctx context.Context, below ...string) ([]string, error) {
	return r.user(ctx).status(ctx, below...)
}

// Query runs a read-only git command in a git directory; "" means in the work tree.
func (r Repo) Query(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, error) {
	if dir == "" {
		return r.user(ctx).run(ctx, stdin, args...)
	}
	g := newGit(r.env.Environ, dir)
	return g.in(dir, dir, "").run(ctx, stdin, args...) // the work tree in its config might be missing
}

// Modules is the file with the sources of submodules.
const Modules = ".gitmodules"

// WithSubmodulesOf returns a tree with the submodules of a commit instead of its own, and with the commit's
// .gitmodules if one of them was left out. apart lists the paths in which that tree differs.
func (r Repo) WithSubmodulesOf(
	ctx context.Context, s Spec, tree protocol.Tree, commit string, left ...string,
) (with protocol.Tree, apart []string, err error) {
	g := inStore(r.env, s.Git)
	named, err := r.TreeOf(ctx, s, commit)
	if err != nil {
		return "", nil, err
	}
	plan, err := g.differing(ctx, tree, named)
	for _, d := range plan {
		switch {
		case d.isLink():
			apart = append(apart, d.path)
		case d.path == Modules && len(left) > 0:
			out, err := g.run(ctx, nil, append([]string{"ls-tree", sumOf(named), "--"}, left...)...)
			if err != nil {
				return "", nil, err
			}
			if strings.Contains("\n"+string(out), "\n"+Gitlink) {
				apart = append(apart, d.path)
			}
		}
	}
	if err != nil || len(apart) == 0 {
		return tree, nil, err
	}
	plan = slices.DeleteFunc(plan, func(d difference) bool { return !skipped(d.path, apart) })
	with, err = g.graft(ctx, s, tree, plan)
	return with, apart, err
}

// ChangedPaths returns the paths in which two trees differ, except submodules; "" is a tree without files.
func (r Repo) ChangedPaths(ctx context.Context, s Spec, a, b protocol.Tree) ([]string, error) {
	if a == b {
		return nil, nil
	}
	list, err := inStore(r.env, s.Git).differing(ctx, orEmpty(a, b), orEmpty(b, a))
	return names(slices.DeleteFunc(list, difference.isLink)), err
}

// indexNote caches information about a thread's index in a file next to it, to save git commands. It is only
// an optimization: it is valid while the index and our git directory are those it was written for.
type indexNote struct {
	Index string        `json:"index"`         // [identity] of the index
	Git   string        `json:"git,omitempty"` // that of HEAD in our git directory, which is never changed
	Tree  protocol.Tree `json:"tree"`          // tree of the index
	// Looked is the time in ns when the look at the files began: it may lack later changes.
	Looked int64 `json:"looked,omitempty"`
	// Dirs has a mark for each directory and file with rules that git's look at other files depended on; none if another
	// look is necessary. Empty lists those without files in the index, and For is the scope of the look.
	Dirs  []byte   `json:"dirs,omitempty"`
	Empty []string `json:"empty,omitempty"`
	For   string   `json:"for,omitempty"`
	// Out lists the redacted paths when the index was written.
	Out []string `json:"out,omitempty"`
}

const (
	noteSuffix = ".json" // after the path of the index
	maxNote    = 1 << 20 // bytes
)

// recall reads the note of an index. It returns the zero value if there is none, or if it is about another index or
// git directory: a killed process may have replaced the index.
func recall(s Spec) (n indexNote) {
	text, err := safeopen.ReadFile(s.Index+noteSuffix, maxNote, safeopen.NoFollow)
	if err != nil || json.Unmarshal(text, &n) != nil || !n.Tree.Valid() || n.Index == "" ||
		n.Index != identity(s.Index) || n.Git != identity(filepath.Join(s.Git, "HEAD")) {
		return indexNote{}
	}
	return n
}

// identity identifies a file that is never changed in place, only replaced.
func identity(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(safeopen.Identity(info), " ", info.Size(), " ", info.ModTime().UnixNano())
}
