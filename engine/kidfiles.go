package engine

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/durable"
)

// Children may work in git worktrees of their own. Each begins with the files of its parent
// as they are when it is started; the worktree itself is made when the child takes its first
// step, and goes when the child has ended, since its steps keep what it has made. What
// they have changed may be merged into the files of the parent when they are joined.

// kidTrees is what the worktrees of children begin with. nil: they work where their parent
// does.
type kidTrees struct {
	repo files.Repo
	rel  string // of the parent's directory in its work tree
	dir  string // in which worktrees are
	tree protocol.Tree
}

// kidTrees finds out where the children of a position work.
func (e *Engine) kidTrees(ctx context.Context, h *lockedThread, pos *status.Position, dir string) (*kidTrees, error) {
	role := pos.Next.Role
	if pos.Workflow.Roles[role].Workspace != workspace.InWorktree {
		return nil, nil
	}
	if h.workspace == nil || h.workspace.Mode == workspace.AsItIs {
		return nil, fault.Hinted(fault.New(protocol.CodeFailed, "role %q gives each of its children a git worktree, but the files of thread %s are not kept", role, h.id),
			"uwf run, and uwf thread start, keep them in a git work tree: --workspace here, or --workspace worktree")
	}
	k, err := e.Files().OpenFiles(ctx, h.id, pos.Dir(), h.workspace)
	if err != nil {
		return nil, fmt.Errorf("the files that the children of role %q begin with: %w", role, err)
	}
	defer k.Release()
	if k.Repo.Head == "" {
		return nil, fault.Hinted(fault.New(protocol.CodeFailed, "%s has no commit yet, and the worktrees of role %q begin with one", place.Shown(k.Repo.Root), role), "git commit --allow-empty -m start")
	}
	return e.treesBeside(k.Repo, dir, k.Spec.Tree)
}

// treesBeside are worktrees of a repository for those who would work in a directory of it.
func (e *Engine) treesBeside(repo files.Repo, dir string, tree protocol.Tree) (*kidTrees, error) {
	rel, ok := place.Below(repo.Root, dir)
	if !ok {
		return nil, fault.New(protocol.CodeFailed, "the children are to work in git worktrees, but %s is outside %s", place.Shown(dir), place.Shown(repo.Root))
	}
	trees := filepath.Dir(e.Dirs.Worktree("x"))
	if err := durable.MkdirAll(e.FS, trees, 0o700); err != nil {
		return nil, err
	}
	trees, err := place.Real(trees)
	return &kidTrees{repo: repo, rel: rel, dir: trees, tree: tree}, err
}

// ownTree is the worktree on this machine of a child that had one where it comes from; nil: it
// had none. above is where its parent works.
func (e *Engine) ownTree(ctx context.Context, id string, above *heads.Workspace) (*heads.Workspace, error) {
	head, _, err := e.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	t, err := thread.Open(ctx, e.Nodes(), head)
	if err != nil || t.Start.Workspace == nil || t.Start.Workspace.Mode != workspace.InWorktree {
		return nil, err
	}
	repo, err := files.Find(ctx, e.Env, above.Root)
	if err != nil {
		return nil, workspace.NoWorkTree(above.Root, err)
	}
	trees, err := e.treesBeside(repo, above.Root, "")
	if err != nil {
		return nil, err
	}
	_, own := trees.of(id)
	return own, nil
}

// of is the workspace of a child, for its chain and for this machine; nil: it has none.
func (t *kidTrees) of(child string) (*protocol.Workspace, *heads.Workspace) {
	if t == nil {
		return nil, nil
	}
	return &protocol.Workspace{Mode: workspace.InWorktree, Tree: t.tree},
		&heads.Workspace{Mode: workspace.InWorktree, Root: filepath.Join(t.dir, child, t.rel), Repo: t.repo.Common, Base: t.repo.Head}
}

// madeByKids is what the children of an attempt have made in worktrees of their own, by
// their order; of those that were not completed, and those that had none, nothing.
func (a *attempt) madeByKids(ctx context.Context) ([]*workspace.StepFiles, error) {
	made := make([]*workspace.StepFiles, len(a.pos.Kids))
	if a.pos.Workflow.Roles[a.task.role].Workspace != workspace.InWorktree {
		return made, nil
	}
	for i, k := range a.pos.Kids {
		if k.Ended.Status != protocol.StatusCompleted {
			continue
		}
		m, ok, err := a.Files().MadeBy(ctx, k.Ended.Head)
		if err != nil {
			return nil, fault.Hinted(fault.Of(fmt.Errorf("child %s: %w", k.Key, err)), "uwf thread again "+a.locked.id+"/"+k.Key+" plays it anew")
		}
		if !ok {
			continue
		}
		if made[i] = &m; len(m.Left) > 0 {
			a.warn(fmt.Sprintf("child %s: the files that are not kept stay in its worktree, and are not merged: %s", k.Key, workspace.Some(m.Left)))
		}
	}
	return made, nil
}

// filesOf adds to the results of children which files they have changed.
func filesOf(ctx context.Context, results []moderator.Result, made []*workspace.StepFiles) error {
	for i, m := range made {
		if m == nil {
			continue
		}
		list, err := m.Changes(ctx)
		if err != nil {
			return fmt.Errorf("child %s: %w", results[i].Key, err)
		}
		results[i].Files = children.Paths(list)
	}
	return nil
}

// mergeKids is what the files of the thread are to be, with what its children have made;
// conflicts are the paths where two of them have changed the same places.
func (a *attempt) mergeKids(ctx context.Context, made []*workspace.StepFiles) (to protocol.Tree, conflicts []string, err error) {
	if !a.pos.Workflow.Roles[a.task.role].Merge {
		return "", nil, nil
	}
	if a.kept == nil {
		return "", nil, fault.New(protocol.CodeFailed, "what the children of role %q have made cannot be merged: the files of thread %s cannot be kept", a.task.role, a.locked.id)
	}
	merged, err := a.mergedBefore(ctx)
	if err != nil {
		return "", nil, err
	}
	var all []workspace.StepFiles
	for i, m := range made {
		if m != nil && !merged[a.pos.Kids[i].Ended.Head] {
			all = append(all, *m)
		}
	}
	now := a.kept.Spec.Tree
	if was := a.begunWith(ctx, now); was != now {
		// Perhaps they were merged already, by somebody who was killed over it.
		to, conflicts, err := a.Files().Merge(ctx, a.kept, was, all)
		if err == nil && len(conflicts) == 0 && to == now {
			a.before, a.kept.Spec.Before = was, was
			return now, nil, nil
		}
	}
	return a.Files().Merge(ctx, a.kept, now, all)
}

// mergedBefore are the heads of children whose files were merged by an earlier step of the
// role that was asked once more since: what a person has made of them is left as it is.
func (a *attempt) mergedBefore(ctx context.Context) (map[protocol.Hash]bool, error) {
	merged := map[protocol.Hash]bool{}
	for s, err := range a.pos.Thread.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Role != a.task.role || len(s.Children) == 0 {
			break
		}
		out, err := a.pos.Thread.Output(ctx, s)
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

// begunWith are the files that the children of an attempt began with, as far as that is known;
// else now.
func (a *attempt) begunWith(ctx context.Context, now protocol.Tree) protocol.Tree {
	for _, k := range a.pos.Kids {
		if m, ok, err := a.Files().MadeBy(ctx, k.Ended.Head); err == nil && ok {
			return m.Before
		}
	}
	return now
}
