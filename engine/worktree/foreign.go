package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/gitdir"
)

// aboutFiles is an imported thread and the files that it works with.
type aboutFiles struct {
	*thread.Thread
	tree protocol.Tree // files after its newest step with files, or its initial files; "" if unknown
	kept bool          // its last step has a snapshot
	// by is the local substitute of tree, and first that of the initial files; "" if there is none.
	by, first protocol.Tree
	// above is the ancestor in whose files it works; "" if it has its own.
	above string
}

// filesFor determines the files that a thread works with; nil if none.
func (e Keeper) filesFor(ctx context.Context, of Thread) (*aboutFiles, error) {
	t, err := thread.Open(ctx, e.Read, of.Head)
	if err != nil {
		return nil, nil //nolint:nilerr // the step reports a damaged chain
	}
	r, w := of.Facts.Repository, t.Start.Workspace
	f, first := &aboutFiles{Thread: t}, protocol.Tree("")
	switch {
	case w != nil && w.Tree != "":
		first = w.Tree
	case r != nil:
		first = r.Tree
	case t.Last != nil && t.Last.Files != nil:
	case of.Facts.Parent == nil:
		return nil, nil
	default:
		above, err := e.Heads.Facts(ctx, of.Facts.Parent.Thread)
		if err != nil || above.Repository == nil {
			return nil, err
		}
		f.above = of.Facts.Parent.Thread
		return f, nil
	}
	f.kept = t.Last != nil && t.Last.Files != nil && t.Last.Files.Tree != ""
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Files != nil && s.Files.Tree != "" {
			f.tree = s.Files.Tree
			break
		}
	}
	f.tree = cmp.Or(f.tree, first)
	finder := e.Finder()
	if _, f.by, err = finder.Find(ctx, "", f.tree); err == nil {
		_, f.first, err = finder.Find(ctx, "", first)
	}
	return f, err
}

// checkFiles returns an error if a directory doesn't have the files that a thread needs. Its code is
// [protocol.CodeNotFound] then.
func (e Keeper) checkFiles(ctx context.Context, id, dir string, t *aboutFiles) *protocol.Error {
	why := ""
	k, err := e.Open(ctx, id, dir, &heads.Workspace{Mode: InPlace, Root: dir})
	var coded *protocol.Error
	switch {
	case errors.As(err, &coded), err != nil && ctx.Err() != nil:
		return fault.Of(err)
	case errors.Is(err, snapshot.ErrNone):
		why = ": it is not in a git work tree"
	case err != nil:
		why = ": " + cwd.Shown(err.Error())
	default:
		defer k.Release()
		if k.Spec.Tree == t.tree || k.Spec.Tree == t.by { // by has redacted files removed
			return nil
		}
	}
	refused := fault.New(protocol.CodeNotFound, "thread %s uses files, and %s does not have them as after its "+
		"last step (%s)%s; nothing was started",
		id, cwd.Shown(dir), cmp.Or(t.tree, "unknown"), why)
	clone, elsewhere := dir, ""
	if k == nil {
		clone = "CLONE"
	}
	if t.by == "" {
		elsewhere = "yes"
	}
	return refused.Because("files-elsewhere", "thread", id, "step", fmt.Sprintf("%s@%d", id, t.Len()), "dir", dir,
		"clone", clone, "missing", elsewhere)
}

// nowhere returns the error for a directory without the thread's files, if they aren't available on this
// machine.
func (t *aboutFiles) nowhere(id, dir string) *protocol.Error {
	if t.above == "" {
		return fault.New(protocol.CodeNotFound,
			"thread %s uses files, its first files are unknown, and %s is not in a git work tree; nothing was "+
				"started", id, cwd.Shown(dir)).Because("files-unknown", "thread", id)
	}
	return fault.New(protocol.CodeInvalid,
		"thread %s works in the files of its parent %s, and %s does not have them; nothing was started",
		id, t.above, cwd.Shown(dir)).Because("parent-files-elsewhere")
}

// placeFor creates a workspace with the files of an imported thread: a repository if dir is empty, else a
// worktree. refused is the reason why dir itself cannot be used.
func (e Keeper) placeFor(ctx context.Context, t Thread, dir string, about *aboutFiles,
	refused error) (*heads.Workspace, error) {
	if about.by == "" {
		return nil, refused
	}
	if !e.isForNew(ctx, dir) {
		return e.treeFor(ctx, t, dir, about, refused)
	}
	below := ""
	if r := t.Facts.Repository; r != nil {
		below = filepath.FromSlash(r.Dir)
	}
	w, err := e.NewRepository(ctx, t.ID, dir, below, cmp.Or(about.first, about.by), about.by)
	if err == nil {
		e.Warn(fmt.Sprintf("thread %s works in %s, a repository with its files but without history", t.ID,
			cwd.Shown(w.Root)))
	}
	return w, err
}

// isForNew reports whether a repository can be created in dir. It must be outside any work tree, and it must
// be empty except for the remains of an interrupted creation.
func (e Keeper) isForNew(ctx context.Context, dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 1 {
		return false
	}
	if len(entries) == 1 {
		left, err := os.Lstat(unfinished(dir))
		return err == nil && left.Mode().IsRegular() && entries[0].Name() == ".git"
	}
	_, err = snapshot.Find(ctx, e.Env, dir)
	return errors.Is(err, snapshot.ErrNone)
}

// An imported thread depends on the files that its last step left. The directory that a user chooses for it
// may already contain them, or those of an earlier step. Otherwise the thread gets a worktree with them, or,
// in an empty directory, a repository. No agent has to work with other files than the thread is about.

// MissingFiles are the files that a thread needs and that its directory lacks. The zero value means that
// nothing is missing.
type MissingFiles struct {
	Refused error // error for a step that would work in them
	Tree    protocol.Tree
}

// WorkspaceIn returns the workspace of a thread in a directory that a user has chosen. For an imported
// thread, it contains the files of the last step.
func (e Keeper) WorkspaceIn(ctx context.Context, t Thread, in *heads.Workspace,
	keepFiles bool) (*heads.Workspace, MissingFiles, error) {
	var none MissingFiles
	was, foreign := t.Facts.Workspace, t.Facts.Foreign()
	own := was != nil && was.Mode == InWorktree
	if own {
		repo, err := snapshot.Find(ctx, e.Env, in.Root)
		if err != nil || !gitdir.Same(repo.Common, was.Repo) {
			return nil, none, fault.New(protocol.CodeFailed, "thread %s works in %s; its directory cannot be "+
				"changed",
				t.ID, cwd.Shown(was.Root)).Because("worktree-is-fixed", "head", string(t.Head), "dir", in.Root)
		}
		if !foreign {
			return was, none, e.Recreate(ctx, t)
		}
	}
	// With other files than those of its last step, it would continue as if they were its own.
	moved := t.Facts.Imported != nil && was != nil && was.Mode == InPlace && !gitdir.Same(was.Root, in.Root)
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
		if _, err := snapshot.Find(ctx, e.Env, in.Root); errors.Is(err, snapshot.ErrNone) {
			return in, MissingFiles{Refused: last.nowhere(t.ID, in.Root)}, nil
		}
		last = nil
	default:
		refused := e.checkFiles(ctx, t.ID, in.Root, last)
		if refused != nil && refused.Code != protocol.CodeNotFound {
			return nil, none, refused
		}
		if refused != nil && was != nil && was.Mode == InPlace && gitdir.Same(was.Root, in.Root) {
			if _, err := e.catchUp(ctx, t.ID, was, last.Thread); err == nil {
				return was, none, nil
			}
		}
		if refused != nil {
			w, err := e.placeFor(ctx, t, in.Root, last, refused)
			if err != nil && ctx.Err() == nil { // a person's answer needs no files
				return in, MissingFiles{err, last.tree}, nil
			}
			return w, none, err
		}
	}
	if own {
		return was, none, nil
	}
	if was != nil && was.Mode == InPlace || last != nil {
		kept, err := e.inPlace(ctx, in.Root)
		if err == nil {
			return kept, none, nil
		}
		if !errors.Is(err, snapshot.ErrNone) {
			return nil, none, err
		}
	}
	return in, none, nil
}

// returned updates the worktree of a thread that continued on another machine to the files of its last step,
// and creates it again if it is gone.
func (e Keeper) returned(ctx context.Context, t Thread, last *thread.Thread) error {
	if !snapshot.IsGone(e.Dirs.Worktree(t.ID)) {
		_, err := e.catchUp(ctx, t.ID, t.Facts.Workspace, last)
		return err
	}
	return e.treeAgain(ctx, t, last)
}

// catchUp updates a thread's work tree from the files of an earlier step to those of its last one. It returns
// the changes, or nil if there are none. Errors are *protocol.Error.
func (e Keeper) catchUp(ctx context.Context, id string, w *heads.Workspace,
	t *thread.Thread) (_ *protocol.FileChanges, err error) {
	defer fault.Coded(&err)
	last, err := e.FilesOf(ctx, t)
	if err != nil {
		return nil, err
	}
	k, err := e.Open(ctx, id, w.Root, w)
	if err != nil {
		return nil, err
	}
	defer k.Release()
	if k.Spec.Tree == last.After {
		return nil, nil
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if from := k.Spec.Tree; s.Files != nil && (s.Files.Tree == from || s.Files.Before == from) {
			changed, err := e.follow(ctx, k, id, t.Head, from, last.After)
			return cmp.Or(changed, &protocol.FileChanges{}), err
		}
	}
	return nil, fault.New(protocol.CodeFailed,
		"thread %s has new steps from another machine, and files in %s were changed here", id,
		cwd.Shown(w.Root)).Because("changed-here", "root", w.Root, "step", fmt.Sprintf("%s@%d", id, t.Len()))
}

// treeFor creates a worktree with the files of an imported thread's last step, in the repository that
// contains dir. refused is the reason why dir itself cannot be used.
func (e Keeper) treeFor(ctx context.Context, t Thread, dir string, about *aboutFiles,
	refused error) (*heads.Workspace, error) {
	repo, err := snapshot.Find(ctx, e.Env, dir)
	if err != nil || repo.Head == "" {
		return nil, refused
	}
	base := repo.Head
	if r := t.Facts.Repository; r != nil {
		var ok bool
		if base, ok = repo.Commit(ctx, r.Base); !ok {
			return nil, fault.New(protocol.CodeFailed,
				"thread %s started at commit %s, which %s does not have: another or an outdated repository; "+
					"nothing was started", t.ID, r.Base, cwd.Shown(repo.Root)).Because("commit-elsewhere", "root", repo.Root,
				"step", fmt.Sprintf("%s@%d", t.ID, about.Len()))
		}
	}
	wf, err := about.Workflow(ctx)
	if err != nil {
		return nil, err
	}
	n := NewTree{ID: t.ID, Repo: repo, Dir: dir, Base: base, Tree: about.by, Name: cmp.Or(wf.Name, "thread"), Foreign: true}
	if _, err := e.removePlanned(ctx, t.ID); err != nil { // interrupted before the thread recorded it
		return nil, err
	}
	w, err := e.AddWorktree(ctx, n)
	if err == nil {
		e.Warn(fmt.Sprintf("thread %s works in %s with the files of its last step; apply its changes with uwf "+
			"thread apply",
			t.ID, cwd.Shown(w.Root)))
	}
	return w, err
}
