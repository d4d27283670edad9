package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/runfiles"
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
		if len(byThread[id]) > 0 {
			if err := e.redactIn(ctx, store, byThread, shared, &out); err != nil {
				return out, err
			}
			if out.States > 0 {
				continue
			}
			cut, remains, err := snapshot.FinishRedaction(ctx, e.Env, store.path, store.common)
			if err != nil {
				return out, err
			}
			ended = ended || cut
			out.Remains = append(out.Remains, remains...)
		}
	}
	if out.States == 0 && !ended {
		return out, fault.New(protocol.CodeNotFound, "no file snapshot of thread %s has %s", id, cwd.Shown(name))
	}
	slices.Sort(out.Also)
	return out, nil
}

// redactIn redacts in one snapshot repository. If two threads share a commit, the second is only found after
// the first is redacted, so it takes several rounds.
func (e Keeper) redactIn(ctx context.Context, store keptIn, byThread map[string][]protocol.Tree, shared bool,
	out *protocol.FilesRedacted) error {
	const rounds = 5
	for round := range rounds {
		r, err := e.holders(ctx, store, byThread, out, round == 0)
		if err != nil || len(r.Trees) == 0 {
			return err
		}
		if len(out.Also) > 0 && !shared {
			return fault.New(protocol.CodeInvalid, "%s is also in the snapshots of other threads: %s", cwd.Shown(out.Path),
				Abbreviate(out.Also)).Because("path-shared", "thread", out.Thread, "path", out.Path)
		}
		threads := append([]string{out.Thread}, out.Also...)
		if r.Refs, err = snapshot.RefsOf(ctx, e.Env, store.path, threads); err != nil {
			return err
		}
		done, err := snapshot.Redact(ctx, e.Env, store.path, store.common, r)
		out.States += len(done.Trees)
		out.Remains = append([]string{}, done.Remains...)
		for _, thread := range threads { // index files refer to the content
			if gone := os.Remove(e.RunDir(thread).File(runfiles.IndexFile)); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holders returns the snapshots that contain the path, of the thread and of others, and records the latter.
// If none of the thread's contains it in the first round, it returns none at all.
func (e Keeper) holders(ctx context.Context, store keptIn, byThread map[string][]protocol.Tree,
	out *protocol.FilesRedacted, first bool) (r snapshot.Redaction, err error) {
	r.Path = out.Path
	kept, err := snapshot.StatesByThread(ctx, e.Env, store.path)
	if err != nil {
		return r, err
	}
	for thread, trees := range byThread {
		for _, tree := range trees {
			kept[thread] = append(kept[thread], snapshot.Substitute(ctx, e.Env, store.path, tree))
		}
	}
	if own, err := snapshot.WithPath(ctx, e.Env, store.path, out.Path, kept[out.Thread]); err != nil || first &&
		len(own) == 0 {
		return r, err
	}
	for thread, trees := range kept {
		has, err := snapshot.WithPath(ctx, e.Env, store.path, out.Path, trees)
		if err != nil {
			return r, err
		}
		if len(has) == 0 {
			continue
		}
		if thread != out.Thread && !slices.Contains(out.Also, thread) {
			out.Also = append(out.Also, thread)
		}
		r.Trees = append(r.Trees, trees...)
	}
	return r, nil
}

// keptIn is a snapshot repository and the git directory of the user's repository.
type keptIn struct{ path, common string }

// keptTrees returns the snapshots of all threads of this home, by the repository that stores them.
func (e Keeper) keptTrees(ctx context.Context) (map[keptIn]map[string][]protocol.Tree, error) {
	finder, all := e.Finder(), map[keptIn]map[string][]protocol.Tree{}
	for s, err := range e.states(ctx, e.Heads, nil) {
		if err != nil {
			return nil, err
		}
		store, by, err := finder.Find(ctx, s.root, s.tree)
		if err != nil {
			return nil, err
		}
		if store == "" {
			continue
		}
		in := keptIn{store, snapshot.Owner(store)}
		if all[in] == nil {
			all[in] = map[string][]protocol.Tree{}
		}
		if !slices.Contains(all[in][s.thread], by) {
			all[in][s.thread] = append(all[in][s.thread], by)
		}
	}
	return all, nil
}
