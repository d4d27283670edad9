package workspace

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
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/plaintext"
)

// A thread from elsewhere depends on the files that its last step left. The directory in which
// a person lets it work may already have them, or those of an earlier step; otherwise the
// thread gets a worktree with them, or, in an empty directory, a repository. Nobody is asked
// to work among other files: they are not what the thread is about.

// Elsewhere are the files that a thread needs and that are not where it works. The zero value:
// they are there, or it needs none.
type Elsewhere struct {
	Refused error // whoever would work in them
	Tree    protocol.Tree
}

// ForkIn is the hint for a thread whose worktree has lost its branch or its repository.
func ForkIn(head, dir string) string {
	return "uwf thread fork " + head + " --cwd " + plaintext.Word(dir) + " --files worktree makes a thread with its files"
}

// In is the workspace of a thread in a directory that a person has named, with the files of
// its last step if it comes from elsewhere.
func (e Keeper) In(ctx context.Context, t Thread, in *heads.Workspace, keepFiles bool) (*heads.Workspace, Elsewhere, error) {
	var none Elsewhere
	was, foreign := t.Facts.Workspace, t.Facts.Foreign()
	own := was != nil && was.Mode == InWorktree
	if own {
		repo, err := files.Find(ctx, e.Env, in.Root)
		if err != nil || !SameFile(repo.Common, was.Repo) {
			return nil, none, fault.Hinted(fault.New(protocol.CodeFailed,
				"thread %s works in %s: another directory cannot be given to it",
				t.ID, place.Shown(was.Root)), ForkIn(string(t.Head), in.Root))
		}
		if !foreign {
			return was, none, e.ComeBack(ctx, t)
		}
	}
	// Among other files than those of its last step it would go on as if they were its own.
	moved := t.Facts.Imported != nil && was != nil && was.Mode == InPlace && !SameFile(was.Root, in.Root)
	last, err := e.filesFor(ctx, t)
	if err != nil {
		return nil, none, err
	}
	switch {
	case last == nil || !foreign && !moved || keepFiles:
	case own && last.kept:
		return was, none, e.returned(ctx, t, last.Thread)
	case own:
	case last.tree == "":
		if _, err := files.Find(ctx, e.Env, in.Root); errors.Is(err, files.ErrNone) {
			return in, Elsewhere{Refused: last.nowhere(t.ID, in.Root)}, nil
		}
		last = nil
	default:
		refused := e.hasThem(ctx, t.ID, in.Root, last)
		if refused != nil && refused.Code != protocol.CodeNotFound {
			return nil, none, refused
		}
		if refused != nil && was != nil && was.Mode == InPlace && SameFile(was.Root, in.Root) {
			if _, err := e.CatchUp(ctx, t.ID, was, last.Thread); err == nil {
				return was, none, nil
			}
		}
		if refused != nil {
			w, err := e.placeFor(ctx, t, in.Root, last, refused)
			if err != nil && ctx.Err() == nil { // a person's answer needs none of them
				return in, Elsewhere{err, last.tree}, nil
			}
			return w, none, err
		}
	}
	if own {
		return was, none, nil
	}
	if was != nil && was.Mode == InPlace || last != nil {
		kept, err := e.InPlace(ctx, in.Root)
		if err == nil {
			return kept, none, nil
		}
		if !errors.Is(err, files.ErrNone) {
			return nil, none, err
		}
	}
	return in, none, nil
}

// returned gives the worktree of a thread that has gone on elsewhere the files of its last
// step, and makes it again if it is gone.
func (e Keeper) returned(ctx context.Context, t Thread, last *thread.Thread) error {
	if _, err := os.Lstat(e.Dirs.Worktree(t.ID)); !errors.Is(err, fs.ErrNotExist) {
		_, err := e.CatchUp(ctx, t.ID, t.Facts.Workspace, last)
		return err
	}
	return e.treeAgain(ctx, t, last)
}

// CatchUp brings the work tree of a thread from the files of an earlier step to those of its
// last one. It returns what that changed; nil: nothing. Errors are *protocol.Error.
func (e Keeper) CatchUp(ctx context.Context, id string, w *heads.Workspace, t *thread.Thread) (*protocol.FileChanges, error) {
	last, err := e.FilesOf(ctx, t)
	if err != nil {
		return nil, err
	}
	k, err := e.OpenFiles(ctx, id, w.Root, w)
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
			if err := e.follow(ctx, k, id, t.Head, from, last.After); err != nil {
				return nil, err
			}
			return cmp.Or(e.changed(ctx, k.Spec.Git, from, last.After), &protocol.FileChanges{}), nil
		}
	}
	return nil, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s has gone on elsewhere, and the files in %s are as after none of its steps: they were changed here", id, place.Shown(w.Root)),
		"git -C "+plaintext.Word(w.Root)+" stash -u puts the changes away, and then it can go on",
		fmt.Sprintf("uwf thread fork %s@%d --cwd DIR --files worktree makes another thread, in a worktree that has its files", id, t.Len()))
}

// treeFor makes a worktree with the files of the last step of a thread from elsewhere, in the
// repository around a directory. refused says why the directory itself cannot be used.
func (e Keeper) treeFor(ctx context.Context, t Thread, dir string, about *aboutFiles, refused error) (*heads.Workspace, error) {
	tree, err := e.kept(ctx, about.tree)
	if err != nil {
		return nil, refused
	}
	repo, err := files.Find(ctx, e.Env, dir)
	if err != nil || repo.Head == "" {
		return nil, refused
	}
	base := repo.Head
	if r := t.Facts.Repository; r != nil {
		var ok bool
		if base, ok = repo.Commit(ctx, r.Base); !ok {
			return nil, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s began at commit %s, which is not in %s: that is another repository, or it lacks what is new. Nothing was started", t.ID, r.Base, place.Shown(repo.Root)),
				"git -C "+plaintext.Word(repo.Root)+" fetch", "--cwd DIR of a clone that has it",
				fmt.Sprintf("uwf thread fork %s@%d --cwd %s --files worktree makes another thread, in a worktree at its HEAD", t.ID, about.Len(), plaintext.Word(repo.Root)))
		}
	}
	wf, err := about.Workflow(ctx)
	if err != nil {
		return nil, err
	}
	n := NewTree{Id: t.ID, Repo: repo, Dir: dir, Base: base, Tree: tree, Name: cmp.Or(wf.Name, "thread"), Foreign: true}
	if _, err := os.Lstat(e.Dirs.Worktree(t.ID)); err == nil { // it was cut off before the thread had it
		err := e.unused(ctx, e.Dirs.Worktree(t.ID), base)
		if err == nil {
			err = repo.RemoveWorktree(ctx, e.Dirs.Worktree(t.ID), "", "")
		}
		if err != nil {
			return nil, err
		}
	}
	w, err := e.AddWorktree(ctx, n)
	if err == nil {
		e.Warn(fmt.Sprintf("thread %s works in %s, with the files of its last step; uwf thread apply %s brings home what is made there", t.ID, place.Shown(w.Root), t.ID))
	}
	return w, err
}

// LastKept is a thread whose files were kept with its last step; nil: they were not.
func (e Keeper) LastKept(ctx context.Context, head protocol.Hash) *thread.Thread {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil || t.Last == nil || t.Last.Files == nil || t.Last.Files.Tree == "" {
		return nil // if the chain is damaged, the step reports it
	}
	return t
}
