package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// Thread is one whose files are at stake, under its lock.
type Thread struct {
	ID    string
	Head  protocol.Hash
	Ended bool
	Facts heads.Facts
}

// Leave removes the worktree of a thread that has ended, if nothing was made in it:
// no commit, no file, not even one that git ignores. last is the step that it has ended
// with: if that keeps the files of a child, they are nobody's to look at; nil: it was killed.
func (e Keeper) Leave(ctx context.Context, id string, w *heads.Workspace, start protocol.Start, last *thread.Step) {
	if w == nil || w.Mode != InWorktree {
		return
	}
	repo, err := files.Find(ctx, e.Env, w.Root)
	if err != nil || repo.Head != w.Base {
		return
	}
	if start.Child != nil && last != nil && last.Files != nil && len(last.Files.Left) == 0 {
		if err := repo.RemoveWorktree(ctx, e.Dirs.Worktree(id), "", ""); err != nil {
			e.Warn("the worktree " + place.Shown(w.Root) + " of a child that has ended could not be removed: " + err.Error())
		}
		return
	}
	if untouched, err := repo.Untouched(ctx, true); err != nil || !untouched {
		return
	}
	if repo.RemoveWorktree(ctx, e.Dirs.Worktree(id), w.Branch, w.Base) == nil {
		e.Warn("nothing was made in " + place.Shown(w.Root) + ": the worktree is removed")
	}
}

// ComeBack makes the worktree of an ended thread again that is to go on, with the files
// of its last step, if it was removed, and that of a child which is to take its first step,
// with the files that it begins with. That of another active thread is missed.
func (e Keeper) ComeBack(ctx context.Context, t Thread) error {
	w, path := t.Facts.Workspace, e.Dirs.Worktree(t.ID)
	if w == nil || w.Mode != InWorktree || !t.Ended && t.Facts.Parent == nil {
		return nil
	}
	chain, err := thread.Open(ctx, e.Read, t.Head)
	if err != nil || !t.Ended && chain.Last != nil && (t.Facts.Imported == nil || !e.RunDir(t.ID).Read().Missing) {
		return err
	}
	if err := files.Mend(ctx, w.Repo, filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil && !t.Ended && e.RunDir(t.ID).Read().Missing {
		cut, err := files.Find(ctx, e.Env, path) // nobody has worked in it: who made it was killed
		if err == nil {
			err = cut.RemoveWorktree(ctx, path, "", "")
		}
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return e.treeAgain(ctx, t, chain)
}

// treeAgain makes a thread's worktree again, with the files of its last step, or for the
// first time, with those that it begins with.
func (e Keeper) treeAgain(ctx context.Context, t Thread, chain *thread.Thread) error {
	w := t.Facts.Workspace
	repo, dir, err := e.TreeOf(ctx, w, t.ID)
	if err != nil {
		return nil // where it works is gone: that is said as for every thread
	}
	n := NewTree{Id: t.ID, Repo: repo, Dir: dir, Base: w.Base, Branch: w.Branch, Foreign: t.Facts.Imported != nil}
	if last, err := e.FilesOf(ctx, chain); err == nil {
		n.Tree = last.After
	} else if chain.Last == nil && chain.Start.Workspace != nil {
		n.Tree = chain.Start.Workspace.Tree
	}
	if _, err = e.AddWorktree(ctx, n); err != nil {
		return err
	}
	return e.Made(t.ID)
}
