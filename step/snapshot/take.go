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
	maxUntracked = 50_000  // untracked files
	maxNew       = 1 << 30 // their total size in bytes
	maxListed    = 20      // paths in Taken.Left
)

// Take takes a snapshot of the current files. If it fails, nothing references a new one. It removes leftovers
// of a killed process.
func Take(ctx context.Context, e env.Env, s Spec) (Taken, error) {
	g := of(e.Environ, s)
	before := s.Tree
	taken, err := take(ctx, g, s, before)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errWaits) {
		s.Tree = "" // the content of the index is now unknown
		taken, err = take(ctx, g, s, before)
	}
	return taken, err
}

// take takes a snapshot. before is the tree of s.Parent, s.Tree the tree of the index. Git doesn't run if nothing it
// looked at has changed.
func take(ctx context.Context, g git, s Spec, before protocol.Tree) (taken Taken, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errWaits)
	defer cancel()
	if err := os.RemoveAll(s.Index + lockSuffix); err != nil {
		return Taken{}, err
	}
	known := recall(s.Index)
	same := known.Tree == s.Tree && known.Index == checksum(s.Index)
	if same && s.Tree != "" && s.Tree == before && s.Parent != "" && known.Dirs != "" {
		if digest, _, ok := still(g.env, s, known.Empty, time.Time{}); ok && digest == known.Dirs {
			return Taken{Tree: s.Tree}, nil
		}
	}
	if same && s.Tree != "" {
		if err := distrust(s); err != nil {
			return Taken{}, err
		}
	}
	began := fileTime(s.Index)
	found, err := list(ctx, g, s)
	if err != nil {
		return Taken{}, err
	}
	taken.Tree = s.Tree
	defer func() { taken.Left, taken.Note = found.left, found.note() }()
	n := indexNote{Out: s.Redacted}
	flush := func() error { return nil }
	if len(found.gone)+len(found.put) > 0 || s.Tree == "" {
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
	if len(found.left)+found.more == 0 && !found.conflicted {
		n.stands(ctx, g, s, known, began)
	}
	if reflect.DeepEqual(n, known) {
		return taken, nil
	}
	return taken, n.remember(s.Index)
}

// add adds the changes to the index. It returns the resulting tree, and a function to call before anything
// references the tree.
func (g git) add(ctx context.Context, s Spec, found *changes) (tree protocol.Tree, flush func() error, err error) {
	flush = func() error { return nil }
	if len(found.put) > atOnce {
		g, flush = g.flushedAtOnce(s.Git)
	}
	// Removals come first, because a link might have replaced a directory.
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

// atOnce is the number of files above which flushing the whole file system is faster than flushing each file.
const atOnce = 200

// flushedAtOnce returns git without its own flushing, where the whole file system can be flushed.
func (g git) flushedAtOnce(store string) (git, func() error) {
	if !durable.FlushesAll(store) {
		return g, func() error { return nil }
	}
	return g.with([][2]string{{"core.fsync", "none"}}), func() error { return durable.SyncAll(store) }
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
	gone, put  []string
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

// list finds the changes that can be stored.
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

// tracked parses the output of diff-files: ":<mode> <mode> <hash> <hash> <status>", path.
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
	if info, err := os.Lstat(loosePath(store, sum)); err == nil && info.Mode().IsRegular() {
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
	g := r.user(ctx)
	g.dir = r.Root
	return g.status(ctx, below...)
}

func isLiteral(entry string) bool { return strings.HasPrefix(entry, "GIT_LITERAL_PATHSPECS=") }

// Query runs a read-only git command in a git directory; "" means in the work tree.
func (r Repo) Query(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, error) {
	if dir == "" {
		g := r.user(ctx)
		if g.dir = r.Root; args[0] == "check-ignore" { // doesn't support literal paths
			g.env = slices.DeleteFunc(slices.Clone(g.env), isLiteral)
		}
		return g.run(ctx, stdin, args...)
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
// an optimization: it is valid while the index is the one it was written for and the ref points to the
// commit.
type indexNote struct {
	Index  string        `json:"index"`  // checksum of the index
	Tree   protocol.Tree `json:"tree"`   // tree of the index
	Commit string        `json:"commit"` // commit of the tree
	// Dirs is a digest of the directories and rules that git's look depended on; "" if they may have changed
	// since. Empty lists the directories among them without files in the index, and the rules.
	Dirs  string   `json:"dirs,omitempty"`
	Empty []string `json:"empty,omitempty"`
	// Out lists the redacted paths when the index was written.
	Out []string `json:"out,omitempty"`
}

const maxNote = 1 << 20 // bytes

// noteFile returns the path of the note, next to the index in the thread's run directory.
func noteFile(index string) string { return index + ".json" }

// recall reads the note of an index. An unreadable note counts as empty.
func recall(index string) (n indexNote) {
	text, err := safeopen.ReadFile(noteFile(index), maxNote, safeopen.NoFollow)
	if err != nil || json.Unmarshal(text, &n) != nil || !n.Tree.Valid() {
		return indexNote{}
	}
	return n
}

func (n indexNote) remember(index string) error {
	return durable.ReplaceJSON(durable.OS(), noteFile(index), n)
}

// checksum returns the checksum at the end of an index, or "".
func checksum(index string) string {
	f, err := safeopen.Open(index, safeopen.NoFollow)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	var sum [32]byte // a SHA-1 sum is shorter; the preceding bytes do no harm
	if err != nil || info.Size() < int64(len(sum)) {
		return ""
	}
	if _, err := f.ReadAt(sum[:], info.Size()-int64(len(sum))); err != nil {
		return ""
	}
	return hex.EncodeToString(sum[:])
}
