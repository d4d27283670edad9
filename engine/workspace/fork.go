package workspace

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
)

// Where the files of a fork are.
const (
	FilesWorktree = "worktree" // in a worktree of its own, as they were at that step
	FilesHere     = "here"     // where the other thread has them, as they were at that step
	FilesKeep     = "keep"     // where the other thread has them, as they are
)

// Fork is a thread that is about to begin at a node of another one.
type Fork struct {
	Thread string
	At     *thread.Thread // the chain up to that node
	Facts  heads.Facts    // what is known of it already
	Moved  bool           // a person has said where it works
	// Files are [FilesWorktree], [FilesHere] or [FilesKeep]; "": a worktree, if the files
	// are kept. Before names a step: they are those before it. Detached: the worktree is on
	// no branch.
	Files    string
	Before   protocol.Hash
	Detached bool
}

// Fork is the workspace of a fork.
func (e Keeper) Fork(ctx context.Context, f Fork) (*heads.Workspace, error) {
	t, facts, from := f.At, f.Facts, f.Facts.Fork.Thread
	of, err := e.Heads.Facts(ctx, from)
	if from == "" || err != nil {
		return facts.Workspace, err
	}
	w := of.Workspace
	kept := w != nil && w.Mode != AsItIs || of.Imported != nil && t.Last != nil && t.Last.Files != nil
	switch {
	case f.Files != "" && !kept:
		return nil, noFiles(t.Head, false)
	case facts.Foreign() || !kept:
		return facts.Workspace, nil
	case f.Moved && f.Files == FilesWorktree:
		w = &heads.Workspace{Mode: InPlace, Root: facts.Workspace.Root}
	case f.Moved:
		if f.Files == "" && t.Last != nil && t.Last.Files != nil {
			e.Warn("the fork works with the files of " + place.Shown(facts.Workspace.Root) + " as they are; with --files worktree it has those of that step")
		}
		if here, err := e.InPlace(ctx, facts.Workspace.Root); err == nil {
			return here, nil
		}
		return facts.Workspace, nil
	case w == nil:
		return facts.Workspace, nil
	case f.Files == FilesKeep && w.Mode == InPlace:
		return w, nil
	case w.Mode != InPlace && (f.Files == FilesKeep || f.Files == FilesHere):
		return nil, fault.Hinted(fault.New(protocol.CodeFailed, "%s belongs to thread %s", place.Shown(w.Root), from), "without --files the fork gets a worktree of its own", "--cwd DIR lets it work elsewhere")
	}
	tree, err := e.treeAt(ctx, t, f.Before, from)
	var none *NoFilesError
	if errors.As(err, &none) && f.Files == "" && w.Mode == InPlace {
		e.Warn(none.Error() + ": the fork works with the files as they are")
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	if f.Files == FilesHere {
		return w, e.filesHere(ctx, f.Thread, w, tree, from)
	}
	repo, dir, err := e.TreeOf(ctx, w, from)
	if err != nil {
		return nil, NoWorkTree(w.Root, err)
	}
	base, ok := repo.Commit(ctx, w.Base)
	if !ok {
		base = repo.Head
	}
	name := ""
	if !f.Detached {
		wf, err := t.Workflow(ctx)
		if err != nil {
			return nil, err
		}
		name = cmp.Or(wf.Name, "thread")
	}
	return e.AddWorktree(ctx, NewTree{Id: f.Thread, Repo: repo, Dir: dir, Base: base, Tree: tree, Name: name, Foreign: facts.Imported != nil})
}

// treeAt is the state of the files at a node of a thread: that before a step, if one is
// named, else that after the node; before the thread's first step, what that began with.
func (e Keeper) treeAt(ctx context.Context, t *thread.Thread, before protocol.Hash, of string) (protocol.Tree, error) {
	if before == "" && t.Last != nil {
		step, err := e.FilesOf(ctx, t)
		return step.After, err
	}
	if before == "" {
		now, err := heads.Find(ctx, e.Heads, of)
		if err != nil {
			return "", err
		}
		chain, err := thread.Open(ctx, e.Read, now.Head)
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
			return "", noFiles(t.Head, false)
		}
	}
	first, err := thread.Open(ctx, e.Read, before)
	if err != nil {
		return "", err
	}
	step, err := e.FilesOf(ctx, first)
	return step.Before, err
}

// filesHere puts the files of a fork where the other thread works, if they are those
// that this one has left.
func (e Keeper) filesHere(ctx context.Context, id string, w *heads.Workspace, tree protocol.Tree, of string) error {
	now, err := heads.Find(ctx, e.Heads, of)
	if err != nil {
		return err
	}
	last, err := e.StepFiles(ctx, now.Head)
	if err != nil {
		return err
	}
	k, err := e.OpenFiles(ctx, id, w.Root, w)
	if err != nil {
		return err
	}
	defer k.Release()
	err = e.follow(ctx, k, id, now.Head, last.After, tree)
	if coded := (*protocol.Error)(nil); errors.As(err, &coded) {
		coded.Hints = slices.DeleteFunc(coded.Hints, func(hint string) bool { return hint == leaveThem })
		coded.Hints = append(coded.Hints, "--files keep leaves all files as they are, and --files worktree has them elsewhere")
	}
	return errors.Join(err, e.forget(id, err))
}

// forget removes the run directory of a thread that was not made, because of an error.
func (e Keeper) forget(id string, err error) error {
	if err == nil {
		return nil
	}
	return os.RemoveAll(e.RunDir(id).Path)
}
