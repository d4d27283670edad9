package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// Where the files of a fork are.
const (
	FilesWorktree = "worktree" // in a worktree of its own, as they were at that step
	FilesHere     = "here"     // where the other thread has them, as they were at that step
	FilesKeep     = "keep"     // where the other thread has them, as they are
)

// forkFiles is the workspace of a fork, at a node of a thread whose files are kept.
func (e *Engine) forkFiles(ctx context.Context, id string, t *thread.Thread, o ForkOptions, facts heads.Facts) (*heads.Workspace, error) {
	of, err := e.Heads.Facts(ctx, facts.Fork.Thread)
	if facts.Fork.Thread == "" || err != nil {
		return facts.Workspace, err
	}
	w := of.Workspace
	kept := w != nil && w.Mode != workspace.AsItIs || of.Imported != nil && t.Last != nil && t.Last.Files != nil
	switch {
	case o.Files != "" && !kept:
		return nil, workspace.NoFiles(&workspace.NoFilesError{Step: t.Head})
	case facts.Foreign() || !kept:
		return facts.Workspace, nil
	case o.Cwd != "" && o.Files == FilesWorktree:
		w = &heads.Workspace{Mode: workspace.InPlace, Root: facts.Workspace.Root}
	case o.Cwd != "":
		if o.Files == "" && t.Last != nil && t.Last.Files != nil {
			e.warn("the fork works with the files of " + place.Shown(facts.Workspace.Root) + " as they are; with --files worktree it has those of that step")
		}
		if here, err := e.Files().InPlace(ctx, facts.Workspace.Root); err == nil {
			return here, nil
		}
		return facts.Workspace, nil
	case w == nil:
		return facts.Workspace, nil
	case o.Files == FilesKeep && w.Mode == workspace.InPlace:
		return w, nil
	case w.Mode != workspace.InPlace && (o.Files == FilesKeep || o.Files == FilesHere):
		return nil, fault.Hinted(fault.New(protocol.CodeFailed, "%s belongs to thread %s", place.Shown(w.Root), facts.Fork.Thread), "without --files the fork gets a worktree of its own", "--cwd DIR lets it work elsewhere")
	}
	tree, err := e.treeAt(ctx, t, o.Before, facts.Fork.Thread)
	var none *workspace.NoFilesError
	if errors.As(err, &none) && o.Files == "" && w.Mode == workspace.InPlace {
		e.warn(none.Error() + ": the fork works with the files as they are")
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	if o.Files == FilesHere {
		return w, e.filesHere(ctx, id, w, tree, facts.Fork.Thread)
	}
	repo, dir, err := e.Files().TreeOf(ctx, w, facts.Fork.Thread)
	if err != nil {
		return nil, workspace.NoWorkTree(w.Root, err)
	}
	base, ok := repo.Commit(ctx, w.Base)
	if !ok {
		base = repo.Head
	}
	name := ""
	if !o.Detached {
		wf, err := t.Workflow(ctx)
		if err != nil {
			return nil, err
		}
		name = cmp.Or(wf.Name, "thread")
	}
	return e.Files().AddWorktree(ctx, workspace.NewTree{Id: id, Repo: repo, Dir: dir, Base: base, Tree: tree, Name: name, Foreign: facts.Imported != nil})
}

// treeAt is the state of the files at a node of a thread: that before a step, if one is
// named, else that after the node; before the thread's first step, what that began with.
func (e *Engine) treeAt(ctx context.Context, t *thread.Thread, before protocol.Hash, of string) (protocol.Tree, error) {
	if before == "" && t.Last != nil {
		step, err := e.Files().FilesOf(ctx, t)
		return step.After, err
	}
	if before == "" {
		head, _, err := e.Lookup(ctx, of)
		if err != nil {
			return "", err
		}
		chain, err := thread.Open(ctx, e.Nodes(), head)
		if err != nil {
			return "", err
		}
		for s, err := range chain.Steps(ctx) {
			if err != nil {
				return "", err
			}
			before = s.Hash
		}
		if before == "" {
			return "", workspace.NoFiles(&workspace.NoFilesError{Step: t.Head})
		}
	}
	first, err := thread.Open(ctx, e.Nodes(), before)
	if err != nil {
		return "", err
	}
	step, err := e.Files().FilesOf(ctx, first)
	return step.Before, err
}

// filesHere puts the files of a fork where the other thread works, if they are those
// that this one has left.
func (e *Engine) filesHere(ctx context.Context, id string, w *heads.Workspace, tree protocol.Tree, of string) error {
	head, _, err := e.Lookup(ctx, of)
	if err != nil {
		return err
	}
	last, err := e.Files().StepFiles(ctx, head)
	if err != nil {
		return err
	}
	k, err := e.Files().OpenFiles(ctx, id, w.Root, w)
	if err != nil {
		return err
	}
	defer k.Release()
	return e.Files().Restore(ctx, k, id, last.After, tree)
}
