package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/safeopen"
)

// redactions describes what was redacted from one of our git directories.
type redactions struct {
	Paths []string `json:"paths,omitempty"`
	// Instead maps the redacted snapshots to their substitutes, which have refs.
	Instead map[protocol.Tree]protocol.Tree `json:"instead,omitempty"`
	// Contents lists the contents of files that no other snapshot had, so that an import never restores them.
	Contents []protocol.Tree `json:"contents,omitempty"`
	// Purging lists the contents to be deleted. It isn't empty if a redaction was interrupted.
	Purging []protocol.Tree `json:"purging,omitempty"`
}

const (
	redactionsFile = "uwf-redactions.json"
	maxRedactions  = 64 << 20 // bytes; a snapshot takes about 100
)

func redactionsOf(store string) (r redactions, err error) {
	text, err := safeopen.ReadFile(filepath.Join(store, redactionsFile), maxRedactions, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", filepath.Join(store, redactionsFile), err)
	}
	return r, nil
}

func (r redactions) write(store string) error {
	text, _ := json.Marshal(r) // encoding texts can't fail
	return durable.WriteFile(durable.OS(), filepath.Join(store, redactionsFile), append(text, '\n'), 0o600)
}

// substitute adds a substitute. It also replaces the snapshot where that is a substitute itself.
func (r *redactions) substitute(tree, by protocol.Tree) {
	if r.Instead == nil {
		r.Instead = map[protocol.Tree]protocol.Tree{}
	}
	by = cmp.Or(r.Instead[by], by)
	for old, its := range r.Instead {
		if its == tree {
			r.Instead[old] = by
		}
	}
	r.Instead[tree] = by
}

// Substitute returns the substitute of a redacted snapshot, or the snapshot itself.
func Substitute(store string, tree protocol.Tree) protocol.Tree {
	r, _ := redactionsOf(store) // a snapshot without its substitute is missing
	if by := r.Instead[tree]; by != "" {
		return by
	}
	return tree
}

// HasRedactions reports whether our git directory has redactions.
func HasRedactions(store string) bool {
	_, err := os.Lstat(filepath.Join(store, redactionsFile))
	return err == nil
}

// SetSubstitutes sets substitutes for snapshots that no longer exist. The substitutes must exist.
func SetSubstitutes(ctx context.Context, e env.Env, store string, instead map[protocol.Tree]protocol.Tree) error {
	if len(instead) == 0 {
		return nil
	}
	r, err := redactionsOf(store)
	if err != nil {
		return err
	}
	g := inStore(e, store)
	for tree, by := range instead {
		if err := g.keepTree(ctx, by); err != nil {
			return err
		}
		r.substitute(tree, by)
	}
	return r.write(store)
}

// RedactedContents returns the names of files' contents that were redacted from our git directory and that
// nothing else there had.
func RedactedContents(store string) ([]protocol.Tree, error) {
	r, err := redactionsOf(store)
	return r.Contents, err
}

// RedactedPaths returns the redacted paths of our git directory.
func RedactedPaths(store string) ([]string, error) {
	r, err := redactionsOf(store)
	return r.Paths, err
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

// StatesByThread returns the snapshots kept by the refs of threads, whether or not a step references them. A
// snapshot that two threads keep by the same commit is listed for only one of them.
func StatesByThread(ctx context.Context, e env.Env, store string) (map[string][]protocol.Tree, error) {
	states, err := inStore(e, store).states(ctx)
	byThread := map[string][]protocol.Tree{}
	for ref, trees := range states {
		byThread[path.Base(ref)] = append(byThread[path.Base(ref)], trees...)
	}
	return byThread, err
}

// states returns the snapshots by the refs that keep them: their newest commits, and ours before those.
func (g git) states(ctx context.Context) (map[string][]protocol.Tree, error) {
	states := map[string][]protocol.Tree{}
	tips, err := g.run(ctx, nil, append([]string{"for-each-ref", "--format=%(refname) %(tree)"}, threadRefs()...)...)
	out, lost := g.run(ctx, nil, "log", "--exclude="+keptRefs+"*", "--all", "--first-parent", "--author=^uwf <uwf>",
		"--format=%S %T")
	for line := range strings.Lines(string(tips) + string(out)) {
		if ref, sum, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			states[ref] = append(states[ref], treeOf(sum))
		}
	}
	return states, errors.Join(err, lost)
}

// Redacted is the result of a redaction.
type Redacted struct {
	Trees []protocol.Tree // that contained the path
	// Ended means that an interrupted redaction was completed.
	Ended bool
	// Remains lists where the content still exists, either until git collects it or permanently.
	Remains []string
}

// Redact removes a file or directory below the root from the given snapshots and from those kept by refs:
// substitutes replace them, and none of our refs leads to the old ones. The content is deleted unless something
// else has it. name is a path with slashes; "" only completes an interrupted redaction.
func Redact(ctx context.Context, e env.Env, store, common, name string, trees []protocol.Tree) (done Redacted, err error) {
	g := inStore(e, store)
	held, err := durable.Lock(ctx, filepath.Join(store, tidyLock))
	if err != nil {
		return done, err
	}
	defer func() { _ = held.Unlock() }()
	r, err := redactionsOf(store)
	if err != nil {
		return done, err
	}
	done.Ended = len(r.Purging) > 0
	if name != "" {
		if done.Trees, err = g.redact(ctx, e, store, name, trees, &r); err != nil {
			return done, err
		}
	}
	if len(r.Purging) == 0 {
		return done, nil
	}
	done.Remains, err = g.purge(ctx, e, store, common, &r)
	return done, err
}

// redact replaces the snapshots that contain a path, and returns them.
func (g git) redact(ctx context.Context, e env.Env, store, name string, trees []protocol.Tree,
	r *redactions) (redacted []protocol.Tree, err error) {
	for {
		states, err := g.states(ctx)
		if err != nil {
			return redacted, err
		}
		all := slices.Concat(append(slices.Collect(maps.Values(states)), trees)...)
		slices.Sort(all)
		holding, err := WithPath(ctx, e, store, name, slices.Compact(all))
		if err != nil {
			return redacted, err
		}
		isNew := func(tree protocol.Tree) bool { return !slices.Contains(redacted, tree) }
		for _, tree := range slices.DeleteFunc(slices.Clone(holding), func(tree protocol.Tree) bool { return !isNew(tree) }) {
			if err := g.substituteFor(ctx, store, tree, name, r); err != nil {
				return redacted, err
			}
			redacted = append(redacted, tree)
		}
		if len(redacted) == 0 {
			return nil, nil
		}
		if !slices.Contains(r.Paths, name) {
			r.Paths = append(r.Paths, name)
		}
		if err := r.write(store); err != nil {
			return redacted, err
		}
		// A ref of which only the history has the path keeps the rest of its snapshots by other refs. If two refs
		// share a commit, the second is found after the first was moved.
		moved := false
		for ref, kept := range states {
			if !slices.ContainsFunc(kept, func(tree protocol.Tree) bool { return slices.Contains(holding, tree) }) {
				continue
			}
			moved = true
			for _, tree := range slices.DeleteFunc(kept, func(tree protocol.Tree) bool { return !isNew(tree) }) {
				if err := g.keepTree(ctx, tree); err != nil {
					return redacted, err
				}
			}
			sum, err := g.line(ctx, "rev-parse", "-q", "--verify", ref+"^{tree}")
			if err == nil {
				_, err = g.keep(ctx, Substitute(store, treeOf(sum)), "", ref) // without history
			}
			if err != nil {
				return redacted, err
			}
		}
		if !moved {
			return redacted, nil
		}
	}
}

// substituteFor creates the substitute of a snapshot, and records the contents that it removed.
func (g git) substituteFor(ctx context.Context, store string, tree protocol.Tree, name string, r *redactions) error {
	index := filepath.Join(store, "redact.index")
	defer func() { _ = os.Remove(index) }()
	if err := scratch(index); err != nil {
		return err
	}
	apart := g.in(store, "", index)
	if _, err := apart.run(ctx, nil, "read-tree", sumOf(tree)); err != nil {
		return err
	}
	out, err := apart.run(ctx, nil, "ls-files", "-s", "-z", "--", name)
	if err != nil {
		return err
	}
	var gone strings.Builder
	for _, entry := range fields(out) {
		meta, at, _ := strings.Cut(entry, "\t")
		if parts := strings.Fields(meta); len(parts) == 3 && parts[0] != Gitlink && !slices.Contains(r.Purging, treeOf(parts[1])) {
			r.Purging = append(r.Purging, treeOf(parts[1]))
		}
		gone.WriteString("0 " + strings.Repeat("0", len(sumOf(tree))) + "\t" + at + "\x00")
	}
	if _, err := apart.run(ctx, []byte(gone.String()), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	sum, err := apart.line(ctx, "write-tree", "--missing-ok")
	if err != nil {
		return err
	}
	r.substitute(tree, treeOf(sum))
	return g.keepTree(ctx, treeOf(sum))
}

// purge deletes contents that nothing references any more, and reports where others still exist.
func (g git) purge(ctx context.Context, e env.Env, store, common string, r *redactions) (remains []string, err error) {
	var gone strings.Builder
	for tree := range r.Instead {
		gone.WriteString("delete " + keptRefs + sumOf(tree) + "\n")
	}
	if _, err := g.run(ctx, []byte(gone.String()), "update-ref", "--stdin"); err != nil {
		return nil, err
	}
	out, err := g.run(ctx, nil, "rev-list", "--objects", "--all", "--missing=allow-any")
	if err != nil {
		return nil, err
	}
	left := map[string]bool{}
	for _, content := range r.Purging {
		left[sumOf(content)] = true
	}
	for line := range strings.Lines(string(out)) {
		sum, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if left[sum] {
			delete(left, sum)
			remains = append(remains, "a state of the files at another path, or of another thread: "+sum)
		}
	}
	sums := slices.Sorted(maps.Keys(left))
	for _, sum := range sums {
		if err := os.RemoveAll(loosePath(store, sum)); err != nil {
			return remains, err
		}
		id := treeOf(sum)
		if sum != hashObject(id.Function(), "blob", "") && !slices.Contains(r.Contents, id) { // the empty file isn't secret
			r.Contents = append(r.Contents, id)
		}
	}
	shared, err := g.unpack(ctx, store, common, left)
	if err != nil {
		return remains, err
	}
	if shared {
		remains = append(remains, store+": in a pack that it shares with your own repository, until your repository "+
			"no longer has it and you run uwf cas gc")
	}
	if common != "" {
		theirs, _ := newGit(e.Environ, store).in(common, "", "").having(ctx, sums) // nothing: it might be missing
		if len(theirs) > 0 {
			remains = append(remains, common+": your own repository has it, in a commit or until git collects it (git gc "+
				"--prune=now)")
		}
	}
	r.Purging = nil
	return remains, r.write(store)
}

// unpack replaces packs that have some of the contents by packs without them. Objects that nothing references stay: a
// process might be about to reference them. It reports whether a pack that belongs to the user's git directory has
// some, too, and stays.
func (g git) unpack(ctx context.Context, store, common string, contents map[string]bool) (shared bool, err error) {
	dir := filepath.Join(store, "objects", "pack")
	packs, err := filepath.Glob(filepath.Join(dir, "*.idx"))
	for _, idx := range packs {
		has, stay, err := g.objectsExcept(ctx, idx, contents)
		if err != nil {
			return shared, err
		}
		if !has {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(idx), ".idx")
		if _, err := os.Lstat(filepath.Join(common, "objects", "pack", name+".pack")); common != "" && err == nil {
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
