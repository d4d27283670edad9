package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/plaintext"
)

// A thread from elsewhere is about the files that its last step has left. Where a person
// lets it work they are there already, or those of an earlier step of its own are, or it
// gets a worktree with them, or in an empty directory a repository. What an agent would find
// among others is not what the thread is about, so nobody is asked to work there.

// workspaceIn is the workspace of a thread in a directory that a person has named, with the
// files of its last step if it comes from elsewhere.
func (e *Engine) workspaceIn(ctx context.Context, h *lockedThread, in *heads.Workspace, keepFiles bool) (*heads.Workspace, error) {
	was, foreign := h.facts.Workspace, h.facts.Foreign()
	own := was != nil && was.Mode == workspace.InWorktree
	if own {
		repo, err := files.Find(ctx, e.Env, in.Root)
		if !foreign || err != nil || !workspace.SameFile(repo.Common, was.Repo) {
			return nil, fault.New(protocol.CodeFailed, "thread %s works in %s: another directory cannot be given to it", h.id, place.Shown(was.Root))
		}
	}
	last, err := e.filesFor(ctx, h)
	if err != nil {
		return nil, err
	}
	switch {
	case last == nil || !foreign || keepFiles:
	case own && last.kept:
		return was, e.returned(ctx, h, was, last.Thread)
	case own:
	case last.tree == "":
		if _, err := files.Find(ctx, e.Env, in.Root); errors.Is(err, files.ErrNone) {
			h.elsewhere.refused = last.nowhere(h.id, in.Root)
			return in, nil
		}
		last = nil
	default:
		refused := e.hasThem(ctx, h.id, in.Root, last)
		if refused != nil && refused.Code != protocol.CodeNotFound {
			return nil, refused
		}
		if refused != nil && was != nil && was.Mode == workspace.InPlace && workspace.SameFile(was.Root, in.Root) {
			if _, err := e.catchUp(ctx, h.id, was, last.Thread); err == nil {
				return was, nil
			}
		}
		if refused != nil {
			w, err := e.placeFor(ctx, h, in.Root, last, refused)
			if err != nil && ctx.Err() == nil { // a person's answer needs none of them
				h.elsewhere = elsewhere{err, last.tree}
				return in, nil
			}
			return w, err
		}
	}
	if own {
		return was, nil
	}
	if was != nil && was.Mode == workspace.InPlace || last != nil {
		kept, err := e.Files().InPlace(ctx, in.Root)
		if err == nil {
			return kept, nil
		}
		if !errors.Is(err, files.ErrNone) {
			return nil, err
		}
	}
	return in, nil
}

// returned gives the worktree of a thread that has gone on elsewhere the files of its last
// step, and makes it again if it is gone.
func (e *Engine) returned(ctx context.Context, h *lockedThread, w *heads.Workspace, t *thread.Thread) error {
	if _, err := os.Lstat(e.Dirs.Worktree(h.id)); !errors.Is(err, fs.ErrNotExist) {
		_, err := e.catchUp(ctx, h.id, w, t)
		return err
	}
	return e.treeAgain(ctx, h, w, t)
}

// catchUp gives the work tree of a thread the files of its last step, if it has those of an
// earlier one. It returns what that has changed; nil: nothing. Errors are *protocol.Error.
func (e *Engine) catchUp(ctx context.Context, id string, w *heads.Workspace, t *thread.Thread) (*protocol.FileChanges, error) {
	last, err := e.Files().FilesOf(ctx, t)
	if err != nil {
		return nil, err
	}
	k, err := e.Files().OpenFiles(ctx, id, w.Root, w)
	if err != nil {
		return nil, fault.Of(err)
	}
	defer k.Release()
	if k.Spec.Tree == last.After {
		return nil, nil
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return nil, fault.Of(err)
		}
		if from := k.Spec.Tree; s.Files != nil && (s.Files.Tree == from || s.Files.Before == from) {
			if err := e.Files().Restore(ctx, k, id, from, last.After); err != nil {
				return nil, err
			}
			list, err := files.Diff(ctx, e.Env, k.Spec.Git, from, last.After)
			if err != nil {
				return &protocol.FileChanges{}, nil //nolint:nilerr // it is for people to look at
			}
			return workspace.FileChanges(list), nil
		}
	}
	return nil, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s has gone on elsewhere, and the files in %s are as after none of its steps: they were changed here", id, place.Shown(w.Root)),
		"git -C "+plaintext.Word(w.Root)+" stash -u puts the changes away, and then it can go on",
		fmt.Sprintf("uwf thread fork %s@%d --cwd DIR --files worktree makes another thread, in a worktree that has its files", id, t.Len()))
}

// Follow gives the worktree of a thread that was brought elsewhere the files of its last
// step, if it has those that the step has left where the thread stood until then. If it has
// others, or if they are not to be had, nothing is done: the next step says so.
func (e *Engine) Follow(ctx context.Context, id string, was protocol.Hash) error {
	facts, err := e.Heads.Facts(ctx, id)
	w := facts.Workspace
	if err != nil || w == nil || w.Mode != workspace.InWorktree {
		return err
	}
	if _, err := os.Lstat(w.Root); err != nil {
		return nil //nolint:nilerr // the next step makes it again
	}
	release, err := e.Exclusive(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	head, err := e.Head(ctx, id)
	if err != nil {
		return err
	}
	before, now := e.lastFiles(ctx, was), e.lastFiles(ctx, head)
	if before == nil || now == nil {
		return nil
	}
	k, err := e.Files().OpenFiles(ctx, id, w.Root, w)
	if err != nil {
		return err
	}
	defer k.Release()
	from, here := e.Files().FilesOf(ctx, before)
	to, there := e.Files().FilesOf(ctx, now)
	if here != nil || there != nil || k.Spec.Tree != from.After {
		return nil //nolint:nilerr // they are not to be had
	}
	return e.Files().Restore(ctx, k, id, from.After, to.After)
}

// treeFor makes a worktree with the files of the last step of a thread from elsewhere, in
// the repository around a directory. refused is why that itself will not do.
func (e *Engine) treeFor(ctx context.Context, h *lockedThread, dir string, t *aboutFiles, refused error) (*heads.Workspace, error) {
	tree, err := e.kept(ctx, t.tree)
	if err != nil {
		return nil, refused
	}
	repo, err := files.Find(ctx, e.Env, dir)
	if err != nil || repo.Head == "" {
		return nil, refused
	}
	base := repo.Head
	if r := h.facts.Repository; r != nil {
		var ok bool
		if base, ok = repo.Commit(ctx, r.Base); !ok {
			return nil, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s began at commit %s, which is not in %s: that is another repository, or it lacks what is new. Nothing was started", h.id, r.Base, place.Shown(repo.Root)),
				"git -C "+plaintext.Word(repo.Root)+" fetch", "--cwd DIR of a clone that has it",
				fmt.Sprintf("uwf thread fork %s@%d --cwd %s --files worktree makes another thread, in a worktree at its HEAD", h.id, t.Len(), plaintext.Word(repo.Root)))
		}
	}
	wf, err := t.Workflow(ctx)
	if err != nil {
		return nil, err
	}
	n := workspace.NewTree{Id: h.id, Repo: repo, Dir: dir, Base: base, Tree: tree, Name: cmp.Or(wf.Name, "thread"), Foreign: true}
	if _, err := os.Lstat(e.Dirs.Worktree(h.id)); err == nil { // it was cut off before the thread had it
		if err := repo.RemoveWorktree(ctx, e.Dirs.Worktree(h.id), "", ""); err != nil {
			return nil, err
		}
	}
	w, err := e.Files().AddWorktree(ctx, n)
	if err == nil {
		e.warn(fmt.Sprintf("thread %s works in %s, with the files of its last step; uwf thread apply %s brings home what is made there", h.id, place.Shown(w.Root), h.id))
	}
	return w, err
}

// lastFiles is a thread whose files were kept with its last step; nil: they were not.
func (e *Engine) lastFiles(ctx context.Context, head protocol.Hash) *thread.Thread {
	t, err := thread.Open(ctx, e.Nodes(), head)
	if err != nil || t.Last == nil || t.Last.Files == nil || t.Last.Files.Tree == "" {
		return nil // of a chain that is damaged the step says so
	}
	return t
}
