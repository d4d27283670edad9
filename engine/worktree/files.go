package worktree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/threadid"
)

// Lifetime of worktrees: an unchanged worktree is removed when its thread ends; others stay until a user
// removes them. The snapshots of a thread's steps are kept as long as the thread, so a removed worktree can
// be recreated.

// appliedRef returns the ref of the part of a thread's result that is on a branch of the user's.
func appliedRef(id string) string { return "refs/uwf-applied/" + id }

// resultRef returns the ref of the commit of an apply in progress.
func resultRef(id string) string { return "refs/uwf-result/" + id }

// Unsaved returns the work of a thread that exists only in its worktree and its snapshots. Errors are
// *protocol.Error.
func (e Keeper) Unsaved(ctx context.Context, id string, facts heads.Facts) (_ Unsaved, err error) {
	defer fault.Coded(&err)
	w := facts.Workspace
	if w == nil || w.Mode != InWorktree {
		return Unsaved{}, nil
	}
	if snapshot.IsGone(w.Root) {
		return e.unapplied(ctx, id, facts)
	}
	return e.onlyInWorktree(ctx, id, w, false)
}

// unapplied does the same as [Keeper.Unsaved] for a worktree that is gone.
func (e Keeper) unapplied(ctx context.Context, id string, facts heads.Facts) (only Unsaved, err error) {
	at, err := heads.Find(ctx, e.Heads, id)
	if err != nil {
		return only, err
	}
	w := facts.Workspace
	repo, _, err := e.treeOf(ctx, w, id)
	last, none := e.StepFiles(ctx, at.Head)
	switch {
	case facts.Parent != nil || err != nil && snapshot.IsGone(w.Repo):
		return only, nil // a child's work belongs to its parent; without the repository, nobody can use it
	case err != nil || none != nil: // without files, nothing can be lost
		return only, err
	}
	spec, err := e.SpecOf(repo, id)
	if err != nil {
		return only, err
	}
	tip, _ := repo.Commit(ctx, "refs/heads/"+w.Branch)
	for _, commit := range []string{w.Base, tip, appliedRef(id)} {
		tree, err := repo.TreeOf(ctx, spec, commit)
		if err != nil {
			continue // no such commit
		}
		differ, err := repo.ChangedPaths(ctx, spec, tree, last.After)
		if err == nil && len(differ) == 0 {
			return Unsaved{}, nil
		}
		only.Files = differ
	}
	if only.None() {
		only.Files = []string{"."}
	}
	return only, nil
}

// Drop removes a thread's worktree and all refs to its snapshots, including unsaved work (see
// [Keeper.Unsaved]). Errors are *protocol.Error.
func (e Keeper) Drop(ctx context.Context, id string, w *heads.Workspace) (err error) {
	defer fault.Coded(&err)
	if w == nil || w.Mode == ModeNone {
		return nil
	}
	repo, _, err := e.treeOf(ctx, w, id)
	if err != nil { // the repository is gone, and its refs with it
		return nil
	}
	spec, err := e.SpecOf(repo, id)
	if err != nil {
		return err
	}
	if err := snapshot.Forget(ctx, e.Env, spec, appliedRef(id), resultRef(id)); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil { // the thread is already removed, and a collection tries again
		e.Warn("could not remove the snapshots of thread " + id + ": " + err.Error())
	}
	if w.Mode != InWorktree {
		return nil
	}
	if err := repo.Release(appliedBy(id)); err != nil {
		return err
	}
	return repo.RemoveWorktree(ctx, e.Dirs.Worktree(id), w.Branch, w.Base)
}

// Worktrees lists the worktrees of threads, and those in the home that belong to no thread. Errors are
// *protocol.Error.
func (e Keeper) Worktrees(ctx context.Context) (_ []protocol.Worktree, err error) {
	defer fault.Coded(&err)
	facts, unread := e.Heads.AllFacts(ctx)
	if unread != nil && facts == nil {
		return nil, unread
	}
	list := []protocol.Worktree{}
	for id, of := range facts {
		if w := of.Workspace; w != nil && w.Mode == InWorktree {
			if tree := e.worktree(ctx, id, w); !tree.Gone || !tree.Status.Ends() && of.Parent == nil { // it was removed when the thread ended
				list = append(list, tree)
			}
		}
	}
	dirs, err := os.ReadDir(filepath.Dir(e.Dirs.Worktree("x")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, d := range dirs {
		// With unreadable facts, it can belong to a thread.
		if _, err := threadid.Parse(d.Name()); err == nil && unread == nil && facts[d.Name()].Workspace == nil {
			list = append(list, e.worktree(ctx, d.Name(), nil))
		}
	}
	sorting.Func(list, func(a, b protocol.Worktree) int { return strings.Compare(a.Path, b.Path) })
	return list, ctx.Err()
}

// worktree describes one worktree; w is nil if it belongs to no thread.
func (e Keeper) worktree(ctx context.Context, id string, w *heads.Workspace) protocol.Worktree {
	out := protocol.Worktree{Path: e.Dirs.Worktree(id)}
	if w != nil {
		out.Thread, out.Branch, out.Base, out.Repo = id, w.Branch, w.Base, w.Repo
		switch at, err := heads.Find(ctx, e.Heads, id); {
		case err != nil:
		case at.End != nil:
			out.Status = at.End.Status
		default:
			out.Status = protocol.StatusIdle
			if now, err := e.Show(ctx, id); err == nil {
				out.Status = now.Status
			}
		}
	}
	if at, err := threadid.Time(id); err == nil {
		out.CreatedAt = at.UnixMilli()
	}
	if _, err := os.Lstat(out.Path); err != nil {
		out.Gone = true
		return out
	}
	_ = filepath.WalkDir(out.Path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				out.Bytes += info.Size()
			}
		}
		return ctx.Err()
	})
	return out
}

// Clean removes the worktrees of ended threads and those that belong to no thread, unless they contain
// unsaved work. Snapshots are kept. It returns all worktrees that it checked; removed ones are marked as
// gone, and the others include the reason why they stay. Errors are *protocol.Error.
func (e Keeper) Clean(ctx context.Context) ([]protocol.Worktree, error) {
	done := []protocol.Worktree{}
	swept, failed := e.Sweep(ctx)
	for _, path := range swept {
		done = append(done, protocol.Worktree{Path: path, Gone: true})
	}
	list, err := e.Worktrees(ctx)
	if err != nil {
		return done, err
	}
	for _, w := range list {
		if w.Gone || w.Thread != "" && !w.Status.Ends() {
			continue
		}
		w.Stays, err = e.clean(ctx, w)
		if err != nil {
			w.Stays = fault.Of(err).Message
		}
		w.Gone = w.Stays == ""
		done = append(done, w)
	}
	return done, cmp.Or(failed, fault.OrNil(ctx.Err()))
}

// clean removes a worktree, or returns why it stays.
func (e Keeper) clean(ctx context.Context, w protocol.Worktree) (stays string, err error) {
	id := filepath.Base(w.Path)
	if w.Thread == "" {
		return e.cleanUnowned(ctx, id, w.Path)
	}
	t, err := e.Lock(ctx, id)
	if err != nil {
		return "", err
	}
	defer t.Release()
	its := t.Facts.Workspace
	if its == nil || !t.Ended {
		return "the thread is still active", nil
	}
	only, err := e.onlyInWorktree(ctx, id, its, false, e.treesOf(ctx, t.Head)...)
	if err != nil || !only.None() {
		return has(only), err
	}
	repo, err := snapshot.Find(ctx, e.Env, w.Path)
	if err != nil {
		return "", err
	}
	return "", repo.RemoveWorktree(ctx, w.Path, its.Branch, its.Base)
}

// cleanUnowned removes a worktree that belongs to no thread, or returns why it stays.
func (e Keeper) cleanUnowned(ctx context.Context, id, path string) (stays string, err error) {
	repo, err := snapshot.Find(ctx, e.Env, path)
	if errors.Is(err, snapshot.ErrNone) {
		return "", os.Remove(path) // only succeeds if the directory is empty
	}
	if err != nil {
		return "", err
	}
	lock, err := e.LockCreation(ctx, id)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.RemoveAndUnlock() }()
	changed, err := repo.Status(ctx)
	if err != nil {
		return "", err
	}
	only, err := Inspect(ctx, e.Env, repo, "", changed, nil)
	if err != nil || !only.None() {
		return has(only), err
	}
	return "", repo.RemoveWorktree(ctx, path, "", "")
}

func has(only Unsaved) string { return "it has " + cwd.Shown(only.String()) }

// Prune removes threads with their worktrees and snapshots. A thread whose worktree contains unsaved work
// stays unless force is set.
func (e Keeper) Prune(ctx context.Context, o prune.Options, force bool) (prune.Report, error) {
	facts, err := e.Heads.AllFacts(ctx)
	if err != nil && facts == nil {
		return prune.Report{}, err
	}
	if !force {
		o.Spare = e.spare(facts)
	}
	x := fileheads.Open(o.Home, e.FS)
	if err := x.CheckLost(ctx); err != nil && len(o.Threads) == 0 {
		return prune.Report{}, err // lost threads need their children and artifacts
	}
	report, err := prune.Run(ctx, x, o)
	if o.DryRun {
		return report, err
	}
	for _, gone := range report.Pruned {
		err = errors.Join(err, e.Drop(ctx, gone.Thread, facts[gone.Thread].Workspace),
			fault.OrNil(e.Dirs.RemoveAgents(gone.Thread)), fault.OrNil(e.RemoveArtifacts(gone.Thread)))
	}
	if len(o.Threads) == 0 {
		err = errors.Join(err, fault.OrNil(e.sweepArtifacts(ctx, o.Now)))
	}
	return report, err
}

// spare returns a function that reports why a thread stays. Parents and children stay together.
func (e Keeper) spare(facts map[string]heads.Facts) func(ctx context.Context, id string) (string, error) {
	known := map[string]string{}
	return func(ctx context.Context, id string) (string, error) {
		root := heads.RootOf(facts, id)
		if why, ok := known[root]; ok {
			return why, nil
		}
		known[root] = ""
		for member := range heads.Family(facts, []string{root}) {
			unsaved, err := e.Unsaved(ctx, member, facts[member])
			switch {
			case err != nil:
				known[root] = err.Error() // the others of the family stay, too
				return known[root], nil
			case unsaved.None():
			case member == root:
				known[root] = "its worktree has " + cwd.Shown(unsaved.String())
			default:
				known[root] = "the worktree of thread " + member + " has " + cwd.Shown(unsaved.String())
			}
		}
		return known[root], nil
	}
}

// Locked is a locked thread.
type Locked struct {
	Thread
	Release func()
}
