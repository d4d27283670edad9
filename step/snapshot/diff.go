package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/proc"
)

// difference is a path that differs between two states of files, such as trees, with its entries in both.
type difference struct {
	status        byte   // A, D, M, T, U
	was, mode     string // modes
	hashWas, hash string
	path          string
}

// differing returns the paths in which two trees differ.
func (g git) differing(ctx context.Context, a, b protocol.Tree) ([]difference, error) {
	list, _, err := g.compare(ctx, a, b)
	return list, err
}

// compare returns the paths in which two trees differ. more contains further arguments for git, whose
// additional output it returns.
func (g git) compare(ctx context.Context, a, b protocol.Tree,
	more ...string) (list []difference, rest []string, err error) {
	args := append([]string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev"}, more...)
	out, err := g.run(ctx, nil, append(args, plainly(a, b)...)...)
	if err != nil {
		return nil, nil, err
	}
	return differences(out)
}

// differences parses git's output with --raw and -z, and returns the rest of it.
func differences(out []byte) (list []difference, rest []string, err error) {
	for rest = fields(out); len(rest) > 1 && strings.HasPrefix(rest[0], ":"); rest = rest[2:] {
		meta := strings.Fields(rest[0][1:])
		if len(meta) != 5 {
			return nil, nil, fmt.Errorf("git prints %q", rest[0])
		}
		list = append(list, difference{meta[4][0], meta[0], meta[1], meta[2], meta[3], rest[1]})
	}
	return list, rest, nil
}

func names(list []difference) []string {
	paths := make([]string, len(list))
	for i, d := range list {
		paths[i] = d.path
	}
	return paths
}

// Change is a file that differs between two snapshots.
type Change struct {
	Path           string
	Status         byte // 'A' added, 'D' removed, 'M' changed
	Added, Removed int  // lines; -1 for binary files
}

// Diff lists the differences between two trees of our git directory, by path. An empty tree has no files.
func Diff(ctx context.Context, e env.Env, store string, a, b protocol.Tree) ([]Change, error) {
	if a == b {
		return nil, nil
	}
	a, b = orEmpty(a, b), orEmpty(b, a)
	raw, counted, err := inStore(e, store).compare(ctx, a, b, "--numstat")
	if err != nil {
		return nil, err
	}
	lines := map[string][2]int{}
	for _, entry := range counted {
		if parts := strings.SplitN(entry, "\t", 3); len(parts) == 3 {
			lines[parts[2]] = [2]int{count(parts[0]), count(parts[1])}
		}
	}
	list := make([]Change, len(raw))
	for i, d := range raw {
		n := lines[d.path]
		list[i] = Change{Path: d.path, Status: d.status, Added: n[0], Removed: n[1]}
		if d.status == 'T' {
			list[i].Status = 'M'
		}
	}
	return list, nil
}

// Totals returns the size of the difference for pairs of trees; nil if a tree is missing. The trees can be in any
// of our git directories; the first one has most of them.
func Totals(ctx context.Context, e env.Env, stores []string, pairs [][2]protocol.Tree) ([]*protocol.FileTotals, error) {
	g := inStore(e, stores[0])
	var more []string
	for _, store := range stores[1:] {
		more = append(more, quoted(filepath.Join(store, "objects")))
	}
	g.env = append(g.env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(more, string(filepath.ListSeparator)))
	sums := make([]*protocol.FileTotals, len(pairs))
	var names []string
	for _, pair := range pairs {
		names = append(names, cmp.Or(sumOf(pair[0]), "-"), cmp.Or(sumOf(pair[1]), "-"))
	}
	kinds, err := g.kinds(ctx, names)
	if err != nil {
		return nil, err
	}
	var ask strings.Builder
	var asked []int
	for i, pair := range pairs {
		a, b := sumOf(pair[0]), sumOf(pair[1])
		if kinds[2*i] != "tree" || kinds[2*i+1] != "tree" {
			continue
		}
		if sums[i] = (&protocol.FileTotals{}); a != b {
			ask.WriteString(a + " " + b + "\n")
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		return sums, nil
	}
	out, err := g.run(ctx, []byte(ask.String()), "diff-tree", "-r", "--stdin", "--numstat", "--no-ext-diff",
		"--no-textconv", "--no-renames", "--no-color")
	if err != nil {
		return nil, err
	}
	i := -1
	for entry := range strings.Lines(string(out)) {
		switch parts := strings.SplitN(entry, "\t", 3); {
		case len(parts) < 3: // the trees
			i++
		case i < 0 || i == len(asked):
			return nil, fmt.Errorf("git diff-tree prints %q", entry)
		default:
			sum := sums[asked[i]]
			sum.Files++
			sum.Added, sum.Removed = sum.Added+max(count(parts[0]), 0), sum.Removed+max(count(parts[1]), 0)
		}
	}
	return sums, nil
}

// count parses a line count printed by git, which is "-" for a binary file.
func count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// plainly returns the arguments of a diff that doesn't start other programs.
func plainly(a, b protocol.Tree) []string {
	return []string{"--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", sumOf(a), sumOf(b)}
}

// Patch writes the difference between two trees as a patch that git can apply.
func Patch(ctx context.Context, e env.Env, store string, a, b protocol.Tree, w io.Writer) error {
	if a == b {
		return nil
	}
	g := inStore(e, store)
	a, b = orEmpty(a, b), orEmpty(b, a)
	if err := g.sound(ctx, e, a, b); err != nil {
		return err
	}
	out, err := g.run(ctx, nil, append([]string{"diff-tree", "-r", "-p", "--binary"}, plainly(a, b)...)...)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// inStore returns git with our git directory and without a work tree. It ignores programs in the current
// directory and in the work tree of the snapshots.
func inStore(e env.Env, store string) git {
	environ := proc.OwnPath(e.Environ, e.Dir)
	if owner := Owner(store); owner != "" {
		environ = proc.OwnPath(environ, filepath.Dir(owner))
	}
	g := newGit(environ, store)
	g.store = store
	return g.in(store, "", "")
}

// orEmpty returns a tree or, for "", the empty tree with the hash function of another. Every git has the
// empty tree.
func orEmpty(tree, other protocol.Tree) protocol.Tree {
	if tree != "" {
		return tree
	}
	return gitobject.ID(gitobject.Directory, nil, other.Function())
}

// IsStore reports whether our git directory exists.
func IsStore(store string) bool {
	return !IsGone(filepath.Join(store, "objects"))
}

// Missing returns the given objects that our git directory doesn't have, in the same order.
func Missing(ctx context.Context, e env.Env, store string, ids []protocol.Tree) (lacking []protocol.Tree, err error) {
	if len(ids) == 0 || !IsStore(store) {
		return ids, nil
	}
	g := inStore(e, store)
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = sumOf(id)
	}
	kinds, err := g.kinds(ctx, names)
	for i, kind := range kinds {
		if kind == "" {
			lacking = append(lacking, ids[i])
		}
	}
	return lacking, err
}
