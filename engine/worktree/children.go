package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
)

// Children can work in their own git worktrees. Each starts with its parent's files at the time the child is
// created. The worktree itself is created before the child's first step and removed after the child has
// ended, since its steps keep its files. When the children are joined, their changes can be merged into the
// parent's files.

// ChildTrees describes the initial worktrees of children. If nil, the children work in their parent's
// directory.
type ChildTrees struct {
	repo snapshot.Repo
	rel  string // path of the parent's directory in its work tree
	dir  string // directory that contains all worktrees
	tree protocol.Tree
}

// ChildTrees determines the initial worktrees of children. They contain the files of the parent's work tree.
func (e Keeper) ChildTrees(ctx context.Context, parent Thread, role, at, dir string) (*ChildTrees, error) {
	w := parent.Facts.Workspace
	if w == nil || w.Mode == ModeNone {
		return nil, fault.New(protocol.CodeFailed,
			"role %q gives each child a git worktree, but thread %s has no file snapshots", role,
			parent.ID).Because("parent-files-not-kept")
	}
	k, err := e.Open(ctx, parent.ID, at, w)
	if err != nil {
		return nil, fmt.Errorf("files for the children of role %q: %w", role, err)
	}
	defer k.Release()
	if k.Repo.Head == "" {
		return nil, fault.New(protocol.CodeFailed,
			"%s has no commits, and the worktrees of role %q need one", cwd.Shown(k.Repo.Root),
			role).Because("no-commit")
	}
	return e.treesBeside(k.Repo, dir, k.Spec.Tree)
}

// treesBeside returns worktrees of a repository for children that would otherwise work in dir.
func (e Keeper) treesBeside(repo snapshot.Repo, dir string, tree protocol.Tree) (*ChildTrees, error) {
	rel, ok := cwd.Below(repo.Root, dir)
	if !ok {
		return nil, fault.New(protocol.CodeFailed, "children run in git worktrees, but %s is outside %s",
			cwd.Shown(dir), cwd.Shown(repo.Root))
	}
	trees := filepath.Dir(e.Dirs.Worktree("x"))
	if err := durable.MkdirAll(e.FS, trees, 0o700); err != nil {
		return nil, err
	}
	trees, err := cwd.Real(trees)
	return &ChildTrees{repo: repo, rel: rel, dir: trees, tree: tree}, err
}

// OwnTree returns the local worktree for an imported child that had one on its original machine, else nil.
// above is the parent's workspace.
func (e Keeper) OwnTree(ctx context.Context, child string, above *heads.Workspace) (*heads.Workspace, error) {
	at, err := heads.Find(ctx, e.Heads, child)
	if err != nil {
		return nil, err
	}
	t, err := thread.Open(ctx, e.Read, at.Head)
	if err != nil || t.Start.Workspace == nil || t.Start.Workspace.Mode != InWorktree {
		return nil, err
	}
	repo, err := snapshot.Find(ctx, e.Env, above.Root)
	if err != nil {
		return nil, noWorkTreeError(above.Root, err)
	}
	trees, err := e.treesBeside(repo, above.Root, "")
	if err != nil {
		return nil, err
	}
	_, own := trees.Of(child)
	return own, nil
}

// Of returns the workspace of a child, for its chain and for this machine, or nil if it has none.
func (t *ChildTrees) Of(child string) (*protocol.Workspace, *heads.Workspace) {
	if t == nil {
		return nil, nil
	}
	return &protocol.Workspace{Mode: InWorktree, Tree: t.tree},
		&heads.Workspace{Mode: InWorktree, Root: filepath.Join(t.dir, child, t.rel), Repo: t.repo.Common, Base: t.repo.Head}
}

// Joined describes the children of a role whose results are about to be joined.
type Joined struct {
	Keeper
	Thread   string
	Chain    *thread.Thread
	Role     string
	Children children.Children

	made []*StepFiles // files made in the children's worktrees, in the order of Children; nil if none
}

// Find finds the files that the children have made in their worktrees, and adds the changed paths to their
// results. It skips children that were not completed or had no worktree.
func (j *Joined) Find(ctx context.Context, results []moderator.Result) error {
	j.made = make([]*StepFiles, len(j.Children))
	for i, k := range j.Children {
		if k.Ended.Status != protocol.StatusCompleted {
			continue
		}
		m, ok, err := j.madeBy(ctx, k.Ended.Head)
		if err != nil {
			return fault.Of(fmt.Errorf("child %s: %w", k.Key, err)).Because("child-files-missing", "child", j.Thread+"/"+k.Key)
		}
		if !ok {
			continue
		}
		list, err := m.Changes(ctx)
		if err != nil {
			return fmt.Errorf("child %s: %w", k.Key, err)
		}
		j.made[i], results[i].Files = &m, children.Paths(list)
	}
	return nil
}

// Merge merges the children's files into those of the thread, in order. If two of them changed the same places, it
// returns the paths and no tree. It writes only git objects.
func (j *Joined) Merge(ctx context.Context, k *Checkout) (to protocol.Tree, conflicts []string, err error) {
	if k == nil {
		return "", nil, fault.New(protocol.CodeFailed, "cannot merge the children of role %q: thread %s has no "+
			"file snapshots", j.Role, j.Thread)
	}
	merged, err := j.mergedBefore(ctx)
	if err != nil {
		return "", nil, err
	}
	to = k.Spec.Tree
	for i, m := range j.made {
		if m == nil || merged[j.Children[i].Ended.Head] {
			continue
		}
		if err := j.fetch(ctx, k.Spec.Git, m.Before, m.After); err != nil {
			return "", nil, err
		}
		next, err := snapshot.MergeTrees(ctx, j.Env, k.Spec.Git, m.Before, to, m.After)
		var conflict *snapshot.ConflictError
		switch {
		case errors.As(err, &conflict):
			conflicts = append(conflicts, conflict.Paths...)
		case err != nil:
			return "", nil, err
		default:
			to = next
		}
	}
	if len(conflicts) == 0 {
		return to, nil, nil
	}
	slices.Sort(conflicts)
	conflicts = slices.Compact(conflicts)
	return "", conflicts[:min(len(conflicts), maxListed)], nil
}

// mergedBefore returns the heads of children whose files an earlier step merged before its role was asked
// again. They are not merged twice, because a user may have edited the result.
func (j *Joined) mergedBefore(ctx context.Context) (map[protocol.Hash]bool, error) {
	merged := map[protocol.Hash]bool{}
	for s, err := range j.Chain.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Role != j.Role || len(s.Children) == 0 {
			break
		}
		out, err := j.Chain.Output(ctx, s)
		if err != nil {
			return nil, err
		}
		if fields, _ := out.Value.(map[string]any); fields[protocol.StatusKey] == moderator.JoinConflict {
			continue
		}
		for _, c := range s.Children {
			merged[c.Head] = true
		}
	}
	return merged, nil
}

// madeBy returns the files before and after the work of a child in its worktree; ok is false if it had no
// worktree. Errors are the same as for [Keeper.StepFiles].
func (e Keeper) madeBy(ctx context.Context, head protocol.Hash) (made StepFiles, ok bool, err error) {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil {
		return made, false, err
	}
	if w := t.Start.Workspace; w == nil || w.Mode != InWorktree || w.Tree == "" {
		return made, false, nil
	}
	if made, err = e.FilesOf(ctx, t); err != nil {
		return made, true, err
	}
	made.Before = snapshot.Substitute(ctx, e.Env, made.store, t.Start.Workspace.Tree)
	return made, true, nil
}

// WriteMerged replaces the files in a thread's open work tree by a merged tree. The intent must be durable.
func (e Keeper) WriteMerged(ctx context.Context, k *Checkout, to protocol.Tree) error {
	l, err := snapshot.Prepare(ctx, e.Env, k.Spec, k.Spec.Tree, to)
	if err == nil {
		err = l.Write(ctx)
	}
	isBlocked := errors.As(err, new(*snapshot.InTheWayError))
	if isBlocked || errors.As(err, new(*snapshot.UnsavedError)) {
		failed := &protocol.Error{Code: protocol.CodeFailed, Err: err,
			Message: "the children's changes were not written: " + cwd.Shown(err.Error())}
		if isBlocked {
			return failed.Because("files-in-the-way")
		}
		return failed
	}
	if err == nil {
		k.Spec.Tree = to
	}
	return err
}
