package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// listFile in our git directory lists the snapshots of threads, one per line: the thread and the tree. A collection
// keeps them even if no step contains them, such as the snapshot before a running step.
const (
	listFile = "uwf-snapshots"
	listLock = listFile + ".lock"
)

// maxSnapshots bounds the size of the list in bytes: 2,000,000 snapshots fit.
const maxSnapshots = 256 << 20

// listed is a line of the list.
type listed struct {
	thread string
	tree   protocol.Tree
}

// readList returns the list. It ignores lines that a power failure has damaged.
func readList(store string) (list []listed, err error) {
	text, err := safeopen.ReadFile(filepath.Join(store, listFile), maxSnapshots, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if thread, sum, _ := strings.Cut(strings.TrimSpace(line), " "); treeOf(sum).Valid() {
			list = append(list, listed{thread, treeOf(sum)})
		}
	}
	return list, nil
}

// addToList lists a snapshot. It doesn't flush the list, because a collection also keeps the snapshots in steps.
func addToList(ctx context.Context, store, thread string, tree protocol.Tree) error {
	held, err := durable.Lock(ctx, filepath.Join(store, listLock))
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	flag := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	f, err := safeopen.OpenFile(filepath.Join(store, listFile), flag, 0o600, safeopen.NoFollow)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\n%s %s\n", thread, sumOf(tree)) // a part of a line can precede it, after a power failure
	return errors.Join(err, f.Close())
}

// removeFromList removes snapshots from the list and returns the others.
func removeFromList(ctx context.Context, store string, remove func(listed) bool) ([]listed, error) {
	held, err := durable.Lock(ctx, filepath.Join(store, listLock))
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Unlock() }()
	list, err := readList(store)
	if err != nil || !slices.ContainsFunc(list, remove) {
		return list, err
	}
	list = slices.DeleteFunc(list, remove)
	var text bytes.Buffer
	for _, l := range list {
		fmt.Fprintf(&text, "%s %s\n", l.thread, sumOf(l.tree))
	}
	return list, durable.Replace(durable.OS(), filepath.Join(store, listFile), text.Bytes(), 0o600)
}

// ListedByThread returns the list by thread.
func ListedByThread(store string) (map[string][]protocol.Tree, error) {
	list, err := readList(store)
	byThread := map[string][]protocol.Tree{}
	for _, l := range list {
		byThread[l.thread] = append(byThread[l.thread], l.tree)
	}
	return byThread, err
}

// allRef refers to a tree whose entries are all snapshots to keep, so that git doesn't collect them.
const allRef = keptRefs + "all"

// keepTrees makes git keep the given and the listed snapshots, and no others. It skips snapshots that are missing or
// have a substitute, and returns the number of snapshots. It deletes the refs of older versions: those in keptRefs, and
// those in more.
func (g git) keepTrees(ctx context.Context, list []listed, trees []protocol.Tree, more ...string) (n int, err error) {
	var names []string
	for _, l := range list {
		names = append(names, sumOf(l.tree))
	}
	for _, tree := range trees {
		names = append(names, sumOf(tree))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var ask []string
	for _, sum := range names {
		ask = append(ask, redactedRefs+sum, sum)
	}
	kinds, err := g.kinds(ctx, ask)
	if err != nil {
		return 0, err
	}
	var all, refs strings.Builder
	for i, sum := range names {
		if kinds[2*i] == "" && kinds[2*i+1] == "tree" {
			fmt.Fprintf(&all, "040000 tree %s\t%s\n", sum, sum)
			n++
		}
	}
	root, err := g.run(ctx, []byte(all.String()), "mktree")
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(&refs, "update %s %s", allRef, root)
	old, err := g.run(ctx, nil, append([]string{"for-each-ref", "--format=delete %(refname)", keptRefs}, more...)...)
	for line := range strings.Lines(string(old)) {
		if !strings.Contains(line, allRef) {
			refs.WriteString(line)
		}
	}
	if err == nil {
		_, err = g.run(ctx, []byte(refs.String()), "update-ref", "--stdin")
	}
	return n, err
}
