package worktree

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// Redact removes a file or directory, given relative to the root of the work tree, from all snapshots of a
// thread. The snapshots are replaced by substitutes. If other threads also contain the path, that is an error
// unless shared is set. Errors are *protocol.Error.
func (e Keeper) Redact(ctx context.Context, id, name string, shared bool) (_ protocol.FilesRedacted, err error) {
	defer fault.Coded(&err)
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	out := protocol.FilesRedacted{Thread: id, Path: name, Remains: []string{}}
	if name == "." || !fs.ValidPath(name) || strings.ContainsAny(name, "\n\x00") {
		return out, fault.New(protocol.CodeUsage, "%s is not a path below the root of the work tree", cwd.Shown(name))
	}
	t, err := e.Lock(ctx, id)
	if err != nil {
		return out, err
	}
	defer t.Release()
	all, err := e.keptTrees(ctx)
	if err != nil {
		return out, err
	}
	ended := false // an earlier redaction was interrupted
	for store, byThread := range all {
		if len(byThread[id]) == 0 {
			continue
		}
		done, err := e.redactIn(ctx, store, byThread, shared, &out)
		if err != nil {
			return out, err
		}
		ended = ended || done.Ended
		out.States += len(done.Trees)
		out.Remains = append(out.Remains, done.Remains...)
	}
	if out.States == 0 && !ended {
		return out, fault.New(protocol.CodeNotFound, "no file snapshot of thread %s has %s", id, cwd.Shown(name))
	}
	return out, nil
}

// redactIn redacts in one snapshot repository, and records the other threads that have the path.
func (e Keeper) redactIn(ctx context.Context, store keptIn, kept map[string][]protocol.Tree, shared bool,
	out *protocol.FilesRedacted) (done snapshot.Redacted, err error) {
	trees := slices.Concat(slices.Collect(maps.Values(kept))...)
	holding, err := snapshot.WithPath(ctx, e.Env, store.path, out.Path, trees)
	if err != nil {
		return done, err
	}
	has := func(tree protocol.Tree) bool { return slices.Contains(holding, tree) }
	name := ""
	if slices.ContainsFunc(kept[out.Thread], has) {
		name = out.Path
		for thread, trees := range kept {
			if thread != out.Thread && slices.ContainsFunc(trees, has) {
				out.Also = append(out.Also, thread)
			}
		}
		if out.Also = slices.Compact(slices.Sorted(slices.Values(out.Also))); len(out.Also) > 0 && !shared {
			return done, fault.New(protocol.CodeInvalid, "%s is also in the snapshots of other threads: %s", cwd.Shown(out.Path),
				Abbreviate(out.Also)).Because("path-shared", "thread", out.Thread, "path", out.Path)
		}
	}
	return snapshot.Redact(ctx, e.Env, store.path, store.common, name, trees)
}

// keptIn is a snapshot repository and the git directory of the user's repository.
type keptIn struct{ path, common string }

// keptTrees returns the snapshots of all threads of this home, also those in no step, by the repositories that store
// them. Substitutes replace redacted snapshots.
func (e Keeper) keptTrees(ctx context.Context) (map[keptIn]map[string][]protocol.Tree, error) {
	byThread, all := map[string][]protocol.Tree{}, map[keptIn]map[string][]protocol.Tree{}
	for s, err := range e.states(ctx, e.Heads, nil) {
		if err != nil {
			return nil, err
		}
		byThread[s.thread] = append(byThread[s.thread], s.tree)
	}
	stores, err := e.Finder().Stores(ctx)
	for _, store := range stores {
		in, by := keptIn{store, snapshot.Owner(store)}, map[protocol.Tree]protocol.Tree{}
		for _, tree := range slices.Concat(slices.Collect(maps.Values(byThread))...) {
			if by[tree] == "" {
				by[tree] = snapshot.Substitute(ctx, e.Env, store, tree)
			}
		}
		lacking, err := snapshot.Missing(ctx, e.Env, store, slices.Sorted(maps.Values(by)))
		if err != nil {
			return nil, err
		}
		if all[in], err = snapshot.ListedByThread(store); err != nil {
			return nil, err
		}
		for thread, trees := range byThread {
			for _, tree := range trees {
				_, lacks := slices.BinarySearch(lacking, by[tree])
				if !lacks && !slices.Contains(all[in][thread], by[tree]) {
					all[in][thread] = append(all[in][thread], by[tree])
				}
			}
		}
	}
	return all, err
}
