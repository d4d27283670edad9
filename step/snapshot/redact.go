package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/safeopen"
)

// redactedRefs lead from a snapshot to its substitute without the redacted content. redactedFile exists if
// there is such a ref, and lists the contents that no other snapshot had, one per line, so that an import
// never restores them.
const (
	redactedRefs = "refs/uwf-redacted/"
	redactedFile = "uwf-redacted"
	// redactedPaths lists the redacted paths.
	redactedPaths = "uwf-redacted-paths"
)

// Substitute returns the substitute of a redacted snapshot, or the snapshot itself.
func Substitute(ctx context.Context, e env.Env, store string, tree protocol.Tree) protocol.Tree {
	if !HasRedactions(store) || !tree.Valid() {
		return tree
	}
	g := inStore(e, store)
	for range maxRedacted {
		sum, err := g.line(ctx, "rev-parse", "-q", "--verify", redactedRefs+sumOf(tree)+"^{tree}")
		if err != nil || treeOf(sum) == tree {
			return tree
		}
		tree = treeOf(sum)
	}
	return tree
}

// HasRedactions reports whether our git directory has redactions.
func HasRedactions(store string) bool {
	return !IsGone(filepath.Join(store, redactedFile))
}

// SetSubstitutes sets substitutes for snapshots that no longer exist. The substitutes must exist.
func SetSubstitutes(ctx context.Context, e env.Env, store string, instead map[protocol.Tree]protocol.Tree) error {
	if len(instead) == 0 {
		return nil
	}
	var refs strings.Builder
	for tree, by := range instead {
		fmt.Fprintf(&refs, "update %s%s %s\n", redactedRefs, sumOf(tree), sumOf(by))
	}
	err := noteRedacted(store, nil)
	if err == nil {
		_, err = inStore(e, store).run(ctx, []byte(refs.String()), "update-ref", "--stdin")
	}
	return err
}

// maxList bounds the size of these files, in bytes.
const maxList = 16 << 20

// maxRedacted bounds the chain of substitutes followed for one snapshot.
const maxRedacted = 100

// Redacted is the result of a redaction.
type Redacted struct {
	Trees []protocol.Tree // that contained the path
	// Ended means that an interrupted redaction was completed.
	Ended bool
	// Remains lists where the content still exists, either until git collects it or permanently.
	Remains []string
}

// WithPath returns the snapshots that contain a path without line breaks.
func WithPath(ctx context.Context, e env.Env, store, name string,
	trees []protocol.Tree) (holding []protocol.Tree, err error) {
	g := inStore(e, store)
	names := make([]string, len(trees))
	for i, tree := range trees {
		names[i] = sumOf(tree) + ":" + name
	}
	kinds, err := g.kinds(ctx, names)
	for i, kind := range kinds {
		if kind == "blob" || kind == "tree" {
			holding = append(holding, trees[i])
		}
	}
	return holding, err
}

// Redact removes a file or directory below the root from the given snapshots and from the listed ones: substitutes
// replace them, and no ref keeps the old ones. The content is deleted unless something else has it. name is
// a path with slashes; "" only completes an interrupted redaction.
func Redact(ctx context.Context, e env.Env, store, common, name string,
	trees []protocol.Tree) (done Redacted, err error) {
	g := inStore(e, store)
	held, err := durable.Lock(ctx, filepath.Join(store, tidyLock))
	if err != nil {
		return done, err
	}
	defer func() { _ = held.Unlock() }()
	contents, err := redacting(store)
	if err != nil {
		return done, err
	}
	done.Ended = len(contents) > 0
	if name != "" {
		done.Trees, err = g.redact(ctx, e, store, name, trees, contents)
	}
	if err != nil || len(contents) == 0 {
		return done, err
	}
	list, err := readList(store)
	if err == nil {
		_, err = g.keepTrees(ctx, list, trees, oldRefs()...)
	}
	if err != nil {
		return done, err
	}
	done.Remains, err = g.purge(ctx, e, store, common, contents)
	if err = errors.Join(err, noteRedacted(store, contents)); err == nil {
		err = os.Remove(filepath.Join(store, redactingFile))
	}
	return done, err
}

// redact replaces the snapshots that contain a path, and returns them.
func (g git) redact(ctx context.Context, e env.Env, store, name string, trees []protocol.Tree,
	contents map[string]bool) ([]protocol.Tree, error) {
	list, err := readList(store)
	if err != nil {
		return nil, err
	}
	refs, err := g.refTrees(ctx, threadRefs()...)
	if err != nil {
		return nil, err
	}
	all := append(slices.Collect(maps.Values(refs)), trees...)
	for _, l := range list {
		all = append(all, l.tree)
	}
	slices.Sort(all)
	holding, err := WithPath(ctx, e, store, name, slices.Compact(all))
	if err != nil || len(holding) == 0 {
		return nil, err
	}
	if err := errors.Join(noteRedacted(store, nil), addLines(store, redactedPaths, []string{name})); err != nil {
		return nil, err
	}
	for _, tree := range holding {
		if err := g.substituteFor(ctx, store, tree, name, contents); err != nil {
			return nil, err
		}
	}
	// Otherwise the refs of an earlier redaction would keep the content of this one.
	earlier, err := g.refTrees(ctx, redactedRefs)
	if err != nil {
		return nil, err
	}
	maps.Copy(refs, earlier)
	has := func(tree protocol.Tree) bool { return slices.Contains(holding, tree) }
	for ref, tree := range refs {
		if !has(tree) {
			continue
		}
		if _, err := g.run(ctx, nil, "update-ref", ref, sumOf(Substitute(ctx, e, store, tree))); err != nil {
			return nil, err
		}
	}
	_, err = removeFromList(ctx, store, func(l listed) bool { return has(l.tree) })
	return holding, err
}

// refTrees returns the trees of the refs in some directories.
func (g git) refTrees(ctx context.Context, dirs ...string) (map[string]protocol.Tree, error) {
	const format = "--format=%(refname) %(if)%(tree)%(then)%(tree)%(else)%(objectname)%(end)"
	out, err := g.run(ctx, nil, append([]string{"for-each-ref", format}, dirs...)...)
	trees := map[string]protocol.Tree{}
	for line := range strings.Lines(string(out)) {
		ref, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
		trees[ref] = treeOf(sum)
	}
	return trees, err
}

// redactingFile lists the contents being deleted from our git directory, one per line. If it exists at the
// start, a redaction was interrupted.
const redactingFile = "uwf-redacting"

func redacting(store string) (map[string]bool, error) {
	sums, err := readLines(store, redactingFile)
	contents := map[string]bool{}
	for _, sum := range sums {
		contents[sum] = true
	}
	return contents, err
}

// readLines returns the lines of a file in our git directory; none if it doesn't exist.
func readLines(store, name string) ([]string, error) {
	text, err := safeopen.ReadFile(filepath.Join(store, name), maxList, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), nil
}

// addLines adds lines to a file in our git directory, and sorts it.
func addLines(store, name string, lines []string) error {
	known, err := readLines(store, name)
	if err != nil {
		return err
	}
	all := slices.Compact(slices.Sorted(slices.Values(append(known, lines...))))
	return durable.WriteFile(durable.OS(), filepath.Join(store, name), []byte(strings.Join(all, "\n")+"\n"), 0o600)
}

// RedactedContents returns the names of files' contents that were redacted from our git directory and that
// nothing else there had.
func RedactedContents(store string) (all []protocol.Tree, err error) {
	sums, err := readLines(store, redactedFile)
	for _, sum := range sums {
		all = append(all, treeOf(sum))
	}
	return all, err
}

// noteRedacted records redacted contents.
func noteRedacted(store string, contents map[string]bool) error {
	sums := slices.DeleteFunc(slices.Collect(maps.Keys(contents)), func(sum string) bool {
		return sum == sumOf(gitobject.ID(gitobject.File, nil, treeOf(sum).Function())) // the empty file isn't secret
	})
	return addLines(store, redactedFile, sums)
}

// RedactedPaths returns the redacted paths of our git directory.
func RedactedPaths(store string) ([]string, error) { return readLines(store, redactedPaths) }

// substituteFor creates the substitute of a snapshot, and records the contents that it removed.
func (g git) substituteFor(ctx context.Context, store string, tree protocol.Tree, path string,
	contents map[string]bool) error {
	out, err := g.run(ctx, nil, "ls-tree", "-r", "-z", sumOf(tree), "--", path)
	if err != nil {
		return err
	}
	var gone []difference
	for _, entry := range fields(out) {
		meta, name, _ := strings.Cut(entry, "\t")
		if parts := strings.Fields(meta); len(parts) == 3 && parts[0] != Gitlink {
			contents[parts[2]] = true
		}
		gone = append(gone, difference{status: 'D', hash: strings.Repeat("0", len(sumOf(tree))), path: name})
	}
	by, err := g.graft(ctx, Spec{Git: store, Index: filepath.Join(store, "redact"), Partial: true}, tree, gone)
	if err != nil {
		return err
	}
	sums := strings.Join(slices.Sorted(maps.Keys(contents)), "\n") + "\n"
	if err := durable.Replace(durable.OS(), filepath.Join(store, redactingFile), []byte(sums), 0o600); err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "update-ref", redactedRefs+sumOf(tree), sumOf(by))
	return err
}

// purge deletes contents that nothing references any more, and reports where others still exist.
func (g git) purge(ctx context.Context, e env.Env, store, common string,
	contents map[string]bool) (remains []string, err error) {
	out, err := g.run(ctx, nil, "rev-list", "--objects", "--all", "--missing=allow-any")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		sum, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if contents[sum] {
			delete(contents, sum)
			remains = append(remains, "a state of the files at another path, or of another thread: "+sum)
		}
	}
	left, objects := slices.Collect(maps.Keys(contents)), filepath.Join(store, "objects")
	for _, sum := range left {
		err = errors.Join(err, os.RemoveAll(loosePath(objects, sum)), os.RemoveAll(loosePath(filepath.Join(objects, "new"), sum)))
	}
	if err = errors.Join(err, sweep(store, common, e.Now().Add(-gitPatience))); err != nil {
		return remains, err
	}
	shared, err := g.unpack(ctx, store, common, contents)
	if err != nil {
		return remains, err
	}
	if shared {
		remains = append(remains, store+": in a pack that it shares with your own repository, until your repository "+
			"no longer has it and you run uwf cas gc")
	}
	if common == "" {
		return remains, nil
	}
	theirs, _ := newGit(e.Environ, store).in(common, "", "").having(ctx, left) // nothing: it might be missing
	if len(theirs) > 0 {
		remains = append(remains, common+": your own repository has it, in a commit or until git collects it (git gc "+
			"--prune=now)")
	}
	return remains, nil
}

// sweep deletes the remains of killed processes: packs without an index, which are written under tidyLock,
// and from before a time, git's temporary files and the new objects of snapshots.
func sweep(store, common string, before time.Time) error {
	for _, pattern := range []string{
		"objects/pack/tmp_*", "objects/pack/*.pack", "objects/??/tmp_obj_*", "objects/new-*", "import-*.tmp",
	} {
		names, err := fs.Glob(os.DirFS(store), pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			path := filepath.Join(store, name)
			info, err := os.Lstat(path)
			if err != nil {
				continue // it has its name now
			}
			left := info.ModTime().Before(before)
			if filepath.Base(filepath.Dir(path)) == "pack" {
				left = IsGone(strings.TrimSuffix(path, ".pack")+".idx") && !isShared(common, path)
			}
			if left {
				if err := os.RemoveAll(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isShared reports whether the user's git directory has a pack of ours.
func isShared(common, pack string) bool {
	return common != "" && !IsGone(filepath.Join(common, "objects", "pack", filepath.Base(pack)))
}

// unpack replaces packs that have some of the contents by packs without them. Objects that nothing references stay: a
// process might be about to reference them. It reports whether a pack that belongs to the user's git directory has
// some, too, and stays.
func (g git) unpack(ctx context.Context, store, common string, contents map[string]bool) (shared bool, err error) {
	dir := filepath.Join(store, "objects", "pack")
	packs, err := fs.Glob(os.DirFS(dir), "*.idx")
	for _, idx := range packs {
		has, stay, err := g.objectsExcept(ctx, filepath.Join(dir, idx), contents)
		if err != nil {
			return shared, err
		}
		if !has {
			continue
		}
		name := strings.TrimSuffix(idx, ".idx")
		if isShared(common, name+".pack") {
			shared = true
			continue
		}
		if stay != "" {
			if _, err := g.run(ctx, []byte(stay), "pack-objects", "-q", filepath.Join(dir, "pack")); err != nil {
				return shared, err
			}
		}
		// Without an index, git doesn't use the pack.
		for _, file := range []string{"multi-pack-index", name + ".idx", name + ".rev", name + ".bitmap", name + ".pack"} {
			if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return shared, err
			}
		}
	}
	return shared, err
}

// maxIndex bounds the index of a pack: 2,000,000 files have 70 MB.
const maxIndex = 1 << 30

// objectsExcept returns the objects of a pack without some, one per line, and reports whether it has one of these.
func (g git) objectsExcept(ctx context.Context, idx string, some map[string]bool) (has bool, others string, err error) {
	data, err := safeopen.ReadFile(idx, maxIndex, safeopen.NoFollow)
	if err != nil {
		return false, "", err
	}
	out, err := g.run(ctx, data, "show-index")
	var stay strings.Builder
	for line := range strings.Lines(string(out)) {
		if parts := strings.Fields(line); len(parts) < 2 || some[parts[1]] {
			has = has || len(parts) >= 2
		} else {
			stay.WriteString(parts[1] + "\n")
		}
	}
	return has, stay.String(), err
}
