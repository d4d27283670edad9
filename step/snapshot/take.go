package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Bounds of a snapshot.
const (
	patience     = 2 * time.Minute
	maxUntracked = 50_000  // files that git does not know
	maxNew       = 1 << 30 // bytes in them
	maxTold      = 20      // paths in Taken.Left
)

// Take makes a snapshot of the files as they are. If it fails, nothing names a new one; it
// removes what a killed one left.
func Take(ctx context.Context, e env.Env, s Spec) (Taken, error) {
	g := of(e.Environ, s)
	before := s.Tree
	taken, err := take(ctx, g, s, before)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errWaits) {
		s.Tree = "" // what the index holds is not known any more
		taken, err = take(ctx, g, s, before)
	}
	return taken, err
}

// take makes a snapshot; before is the tree that s.Parent keeps, s.Tree that of the
// index.
func take(ctx context.Context, g git, s Spec, before protocol.Tree) (taken Taken, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errWaits)
	defer cancel()
	if err := os.Remove(s.Index + lockSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Taken{}, err
	}
	known := recall(s.Index)
	found, err := list(ctx, g, s)
	if err != nil {
		return Taken{}, err
	}
	taken.Tree = s.Tree
	defer func() { taken.Left, taken.Note = found.left, found.note() }()
	changed := len(found.gone)+len(found.put) > 0
	n := indexNote{Out: s.Redacted, Racy: known.Index != checksum(s.Index) || len(found.put) > atOnce || known.Racy &&
		!g.settle(ctx, s.Index, changed)}
	flush := func() error { return nil }
	if changed || s.Tree == "" {
		if taken.Tree, flush, err = g.add(ctx, s, found); err != nil {
			return taken, err
		}
	}
	n.Tree, n.Commit = taken.Tree, s.Parent
	if taken.Tree != before || s.Parent == "" {
		if err := flush(); err != nil {
			return taken, err
		}
		if taken.Commit, err = g.keep(ctx, taken.Tree, s.Parent, s.Ref); err != nil {
			return taken, err
		}
		n.Commit = taken.Commit
	}
	n.Index = checksum(s.Index)
	if reflect.DeepEqual(n, known) && !n.Racy { // the time of the note counts then
		return taken, nil
	}
	return taken, n.remember(s.Index)
}

// settle writes an index again once its second has passed, unless that happens anyway: git
// cannot tell from the time of a file that was written in that second whether it has changed.
// If it fails, git goes on reading all such files.
func (g git) settle(ctx context.Context, index string, written bool) bool {
	if !later(noteFile(index), index) {
		return false
	}
	if written {
		return true
	}
	_, err := g.run(ctx, nil, "update-index", "--force-write-index")
	return err == nil
}

// add brings the changes into the index, and returns the resulting tree, and a function to
// call before anything names it.
func (g git) add(ctx context.Context, s Spec, found *changes) (tree protocol.Tree, flush func() error, err error) {
	flush = func() error { return nil }
	if len(found.put) > atOnce {
		g, flush = g.flushedAtOnce(s.Git)
	}
	// Removals come first: a directory may have become a link.
	if len(found.gone) > 0 {
		if _, err := g.run(ctx, joined(found.gone), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return "", flush, err
		}
	}
	if len(found.put) > 0 {
		if _, err := g.run(ctx, joined(found.put), "update-index", "--add", "--remove", "--replace", "-z",
			"--stdin"); err != nil {
			return "", flush, err
		}
	}
	sum, err := g.line(ctx, append([]string{"write-tree"}, missing(s, "--missing-ok")...)...)
	return treeOf(sum), flush, err
}

// atOnce is the number of files above which one flush of the file system takes less time
// than one of each.
const atOnce = 200

// flushedAtOnce is git that flushes nothing by itself, where the file system can be
// flushed as a whole.
func (g git) flushedAtOnce(store string) (git, func() error) {
	disk, ok := durable.OS().(durable.WholeFS)
	if !ok || !disk.FlushesAll([]string{store}) {
		return g, func() error { return nil }
	}
	return g.with([][2]string{{"core.fsync", "none"}}), func() error { return disk.SyncAll(store) }
}

// missing is the option that lets a tree name objects that the repository does not have.
func missing(s Spec, option string) []string {
	if s.Partial {
		return []string{option}
	}
	return nil
}

// treeOf is a tree as nodes name it.
func treeOf(sum string) protocol.Tree {
	if len(sum) == 64 {
		return protocol.Tree("sha256:" + sum)
	}
	return protocol.Tree("sha1:" + sum)
}

// sumOf is a tree as git names it.
func sumOf(t protocol.Tree) string {
	_, sum, _ := strings.Cut(string(t), ":")
	return sum
}

func joined(paths []string) []byte {
	return []byte(strings.Join(paths, "\x00") + "\x00")
}

// changes are the files that differ from what the index holds.
type changes struct {
	gone, put  []string
	left       []string
	links      []string // submodules elsewhere than in the index, and repositories within
	more       int      // that were left out and are not told
	conflicted bool
}

func (c *changes) leave(path string) {
	if len(c.left) < maxTold {
		c.left = append(c.left, strings.ToValidUTF8(strings.TrimSuffix(path, "/"), "\uFFFD"))
		return
	}
	c.more++
}

// link notes a repository within; git gets them as arguments.
func (c *changes) link(path string) {
	if len(c.links) > 2*maxTold {
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
		notes = append(notes, "a merge was not finished: files have its markers")
	}
	return strings.Join(notes, "; ")
}

// list finds what has changed and can be kept.
func list(ctx context.Context, g git, s Spec) (*changes, error) {
	type result struct {
		out []byte
		err error
	}
	others := make(chan result, 1)
	go func() {
		out, err := g.run(ctx, nil, "ls-files", "-o", "--exclude-standard", "-z")
		others <- result{out, err}
	}()
	diff, err := g.run(ctx, nil, "diff-files", "--raw", "--no-renames", "-z", "--ignore-submodules=dirty")
	untracked := <-others
	if err = cmp.Or(err, untracked.err); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	c := &changes{}
	if err := c.tracked(root, fields(diff), s); err != nil {
		return nil, err
	}
	barred, err := c.untracked(root, fields(untracked.out), s)
	if err != nil {
		return nil, err
	}
	return c, c.leaveUnknown(ctx, g, s, barred)
}

// tracked takes what diff-files says: ":<mode> <mode> <hash> <hash> <status>", path.
func (c *changes) tracked(root *os.Root, raw []string, s Spec) error {
	for i := 0; i+1 < len(raw); i += 2 {
		meta, path := strings.Fields(strings.TrimPrefix(raw[i], ":")), raw[i+1]
		if len(meta) != 5 {
			return fmt.Errorf("git diff-files prints %q", raw[i])
		}
		if meta[4] == "U" {
			c.conflicted = true
		}
		switch info, err := root.Lstat(filepath.FromSlash(path)); {
		case skipped(path, s.Skip), err == nil && isOwn(info, s):
		case meta[0] == Gitlink || meta[1] == Gitlink:
			c.link(path)
		case err != nil && meta[4] == "U", meta[4] == "D":
			c.gone = append(c.gone, path)
		case err == nil && !readable(root, path, info):
			c.leave(path)
		case !slices.Contains(c.put[max(0, len(c.put)-1):], path): // git lists unmerged paths twice
			c.put = append(c.put, path)
		}
	}
	return nil
}

// untracked takes what ls-files says of files that the index does not hold. barred are those that
// count only if the user's git tracks them.
func (c *changes) untracked(root *os.Root, paths []string, s Spec) (barred []string, err error) {
	if len(paths) > maxUntracked {
		return nil, fmt.Errorf("%d files are new, of which %d at most can be kept: does .gitignore name what need not be?",
			len(paths), maxUntracked)
	}
	most, sum := s.MaxFile, int64(0)
	if most == 0 {
		most = DefaultMaxFile
	}
	for _, path := range paths {
		info, err := root.Lstat(filepath.FromSlash(path))
		switch {
		case skipped(path, s.Skip), errors.Is(err, fs.ErrNotExist), err == nil && isOwn(info, s): // or it has gone since
		case strings.HasSuffix(path, "/") && err == nil:
			c.link(path)
		case err != nil, !readable(root, path, info):
			c.leave(path)
		case info.Size() > most, skipped(path, s.DenyRead), skipped(path, s.Redacted):
			barred = append(barred, path)
		default:
			c.put = append(c.put, path)
			if sum += info.Size(); sum > maxNew {
				return nil, fmt.Errorf("new files hold more than %d MB: does .gitignore name what need not be kept?", maxNew>>20)
			}
		}
	}
	return barred, nil
}

func isOwn(info fs.FileInfo, s Spec) bool {
	return len(s.Outputs) > 0 && slices.Contains(s.Outputs, safeopen.Identity(info))
}

// skipped reports whether a path is one that is left out, or below.
func skipped(path string, skip []string) bool {
	return slices.ContainsFunc(skip, func(s string) bool {
		return path == s || strings.HasPrefix(path, s+"/") || path == s+"/"
	})
}

// readable reports whether git can read a file: one unreadable file makes git give up on all
// of them.
func readable(root *os.Root, path string, info fs.FileInfo) bool {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return true
	case info.IsDir(): // in the place of a file: what it holds is told by itself
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

// Has reports whether a tree is kept in our git directory.
func Has(ctx context.Context, e env.Env, store string, tree protocol.Tree) bool {
	if !tree.Valid() {
		return false
	}
	sum := sumOf(Substitute(ctx, e, store, tree))
	if info, err := os.Lstat(loosePath(store, sum)); err == nil && info.Mode().IsRegular() {
		return true
	}
	kind, err := inStore(e, store).line(ctx, "cat-file", "-t", sum)
	return err == nil && kind == "tree"
}

// A snapshot never reads a submodule. Which commit there is of one counts only as the newest commit
// in the work tree names it: a move that nobody has committed is left out.

// Gitlink is the mode of a submodule.
const Gitlink = "160000"

func (d difference) isLink() bool { return d.mode == Gitlink || d.was == Gitlink }

// leaveUnknown leaves out the barred files that the user's git does not track, and the repositories
// within that the newest commit in the work tree does not name as they are.
func (c *changes) leaveUnknown(ctx context.Context, g git, s Spec, barred []string) error {
	if len(barred)+len(c.links) == 0 {
		return nil
	}
	user := newGit(g.env, s.Root)
	if len(barred) > 0 {
		out, _ := user.run(ctx, nil, "ls-files", "-z") // nothing: it cannot tell
		tracked := fields(out)                         // sorted
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
			left = c.links // git cannot tell
		}
		for _, path := range left {
			c.leave(path)
		}
	}
	return ctx.Err()
}

// status are the paths that differ from the newest commit, below some paths; none: all.
func (g git) status(ctx context.Context, below ...string) (paths []string, err error) {
	args := []string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal",
		"--ignore-submodules=dirty", "--"}
	out, err := g.run(ctx, nil, append(args, below...)...)
	for _, entry := range fields(out) {
		paths = append(paths, entry[min(len(entry), len("XY ")):])
	}
	return paths, err
}

// Status are the paths that differ from the newest commit of a work tree, below some; none: all.
func (r Repo) Status(ctx context.Context, below ...string) ([]string, error) {
	g := r.user(ctx)
	g.dir = r.Root
	return g.status(ctx, below...)
}

// Query runs a git command that only looks, in a git directory; "": in the work tree.
func (r Repo) Query(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, error) {
	if dir == "" {
		g := r.user(ctx)
		if g.dir = r.Root; args[0] == "check-ignore" { // it has no literal paths
			g.env = slices.DeleteFunc(slices.Clone(g.env), func(entry string) bool {
				return strings.HasPrefix(entry,
					"GIT_LITERAL_PATHSPECS=")
			})
		}
		return g.run(ctx, stdin, args...)
	}
	g := newGit(r.env.Environ, dir)
	return g.in(dir, dir, "").run(ctx, stdin, args...) // the work tree that its config names may be gone
}

// Modules is the file that says where submodules come from.
const Modules = ".gitmodules"

// WithSubmodulesOf is a state of the files with the submodules that a commit names, in the place of
// its own; what says where they come from, too, if one of those is among the paths that were left
// out. apart are the paths where that differs.
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

// ChangedPaths returns the paths in which two states differ, apart from submodules; "" is one without
// files.
func (r Repo) ChangedPaths(ctx context.Context, s Spec, a, b protocol.Tree) ([]string, error) {
	if a == b {
		return nil, nil
	}
	list, err := inStore(r.env, s.Git).differing(ctx, orEmpty(a, b), orEmpty(b, a))
	return names(slices.DeleteFunc(list, difference.isLink)), err
}

// indexNote is what is known of the index of a thread, in a file beside it, so that git need
// not be asked again. Nothing depends on it: it is true as long as the index is the one
// that it was written for, and the ref leads to the commit.
type indexNote struct {
	Index  string        `json:"index"`  // its checksum
	Tree   protocol.Tree `json:"tree"`   // that it holds
	Commit string        `json:"commit"` // that keeps the tree
	// Racy: many files may be as new as the index, so that git reads each of them to know
	// whether it has changed, until the index is written once more.
	Racy bool `json:"racy,omitempty"`
	// Out are the paths that were taken out when the index was made.
	Out []string `json:"out,omitempty"`
}

const maxNote = 1 << 20 // bytes

// noteFile is beside the index, in the run directory of its thread.
func noteFile(index string) string { return index + ".json" }

// recall reads the note of an index. An unreadable note counts as empty.
func recall(index string) (n indexNote) {
	text, err := safeopen.ReadFile(noteFile(index), maxNote, safeopen.NoFollow)
	if err != nil || json.Unmarshal(text, &n) != nil || !n.Tree.Valid() {
		return indexNote{}
	}
	return n
}

// remember writes it.
func (n indexNote) remember(index string) error {
	text, _ := json.Marshal(n) // texts always encode
	return durable.Replace(durable.OS(), noteFile(index), append(text, '\n'), 0o600)
}

// checksum is that which git writes at the end of an index; "": there is none.
func checksum(index string) string {
	f, err := safeopen.Open(index, safeopen.NoFollow)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	var sum [32]byte // a SHA-1 sum is shorter; the bytes before it do no harm
	if err != nil || info.Size() < int64(len(sum)) {
		return ""
	}
	if _, err := f.ReadAt(sum[:], info.Size()-int64(len(sum))); err != nil {
		return ""
	}
	return hex.EncodeToString(sum[:])
}

// later reports whether a file was written in a later second than another.
func later(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && x.ModTime().Unix() > y.ModTime().Unix()
}
