package worktree

import (
	"context"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// LastKept is a thread whose files were kept with its last step; nil: they were not.
func (e Keeper) LastKept(ctx context.Context, head protocol.Hash) *thread.Thread {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil || t.Last == nil || t.Last.Files == nil || t.Last.Files.Tree == "" {
		return nil // if the chain is damaged, the step reports it
	}
	return t
}

// OnlyInWorktree is what the worktree of a thread has that exists nowhere else. kept are states of its
// files that stay if it goes; the commits do, too, if a ref leads to them. A worktree that is
// gone has nothing. held: the caller has locked the work tree.
func (e Keeper) OnlyInWorktree(ctx context.Context, id string, w *heads.Workspace, held bool,
	kept ...protocol.Tree) (only Found, err error) {
	if w == nil || w.Mode != InWorktree || isGone(w.Root) {
		return only, nil
	}
	k, err := e.open(ctx, id, w.Root, w, held)
	if err != nil {
		return only, fmt.Errorf("look into the worktree %s: %w", place.Shown(w.Root), err)
	}
	defer k.Release()
	edited, err := k.differing(ctx, kept)
	if err == nil {
		only, err = k.Look(ctx, w.Base, edited)
	}
	if err != nil {
		return only, fmt.Errorf("look into the worktree %s: %w", place.Shown(w.Root), err)
	}
	return only, nil
}

// Look finds what exists only in the work tree: edited are files whose state is kept nowhere else, and
// base is the commit that it began with.
func (k *Checkout) Look(ctx context.Context, base string, edited []string) (only Found, err error) {
	left := k.Left
	if k.Repo.Head != "" {
		// Where a commit has files in the place of a submodule, snapshots overlook what is there.
		_, apart, err := k.Repo.WithLinksOf(ctx, k.Spec, k.Spec.Tree, k.Repo.Head)
		if err != nil {
			return only, err
		}
		if len(apart) > 0 {
			overlooked, err := k.Repo.Status(ctx, apart...)
			if err != nil {
				return only, err
			}
			left = slices.Concat(left, overlooked)
		}
	}
	all, err := Inspect(ctx, k.by.Env, k.Repo, base, false)
	if err != nil {
		return only, err
	}
	return Decide(edited, left, all), nil
}

// differing are the paths whose state is neither that of the newest commit nor in one of others.
func (k *Checkout) differing(ctx context.Context, others []protocol.Tree) (paths []string, err error) {
	head := protocol.Tree("")
	if k.Repo.Head != "" {
		if head, err = k.Repo.TreeOf(ctx, k.Spec, k.Repo.Head); err != nil {
			return nil, err
		}
	}
	for i, tree := range append([]protocol.Tree{head}, others...) {
		differ, err := k.Repo.Differing(ctx, k.Spec, tree, k.Spec.Tree)
		switch {
		case err != nil && i == 0:
			return nil, err
		case err != nil: // it is kept elsewhere, or not at all
			continue
		case i == 0:
			paths = differ
		}
		paths = slices.DeleteFunc(paths, func(path string) bool {
			_, differs := slices.BinarySearch(differ, path) // git sorts them
			return !differs
		})
	}
	return paths, nil
}

// KeptTrees are the states of the files that are kept with a head, and with the start of its thread.
func (e Keeper) KeptTrees(ctx context.Context, head protocol.Hash) (kept []protocol.Tree) {
	chain, err := thread.Open(ctx, e.Read, head)
	if err != nil {
		return nil // a damaged thread can still be ended
	}
	if w := chain.Start.Workspace; w != nil && w.Tree != "" {
		kept = append(kept, w.Tree)
	}
	if step, err := e.FilesOf(ctx, chain); err == nil {
		kept = append(kept, step.After)
	}
	return kept
}

// Ended is a thread that has just ended.
type Ended struct {
	ID        string
	Head      protocol.Hash
	Workspace *heads.Workspace
	Killed    bool
	Held      bool // its work tree is locked
}

// RemoveUnused removes the worktree of a thread that has ended if nothing was made in it: no commit, no
// file, not even an ignored one; that of a child also if its last step keeps the files, since
// nobody needs it then. If something exists only there, RemoveUnused warns.
func (e Keeper) RemoveUnused(ctx context.Context, l Ended) {
	w := l.Workspace
	if w == nil || w.Mode != InWorktree || isGone(w.Root) {
		return
	}
	only, err := e.OnlyInWorktree(ctx, l.ID, w, l.Held, e.KeptTrees(ctx, l.Head)...)
	switch {
	case err != nil:
		e.Warn("the worktree of thread " + l.ID + " stays: " + err.Error())
		return
	case !only.None():
		e.Warn("the worktree " + place.Shown(w.Root) + " stays: it has what exists nowhere " +
			"else: " + place.Shown(only.String()))
		return
	}
	repo, err := snapshot.Find(ctx, e.Env, w.Root)
	if err != nil || repo.Head != w.Base {
		return
	}
	chain, err := thread.Open(ctx, e.Read, l.Head)
	kept := err == nil && chain.Start.Child != nil && chain.Last != nil && chain.Last.Files != nil && !l.Killed
	if !kept {
		if made, err := e.OnlyInWorktree(ctx, l.ID, w, l.Held); err != nil || !made.None() {
			return
		}
		if ignores, err := repo.Ignores(ctx); err != nil || ignores {
			return
		}
	}
	switch err := repo.RemoveWorktree(ctx, e.Dirs.Worktree(l.ID), w.Branch, w.Base); {
	case err != nil:
		e.Warn("the worktree " + place.Shown(w.Root) + " of a thread that has ended could not be removed: " + err.Error())
	case !kept:
		e.Warn("nothing was made in " + place.Shown(w.Root) + ": the worktree is removed")
	}
}

// unused refuses to remove a worktree that was made at a commit for a thread which never had it, if
// it has more than files, which may be half made: [*snapshot.RefusedError].
func (e Keeper) unused(ctx context.Context, path, commit string) error {
	made, err := snapshot.Find(ctx, e.Env, path)
	if err != nil || !SameFile(made.Root, path) {
		return ctx.Err()
	}
	all, err := Inspect(ctx, e.Env, made, commit, false)
	if err != nil {
		return err
	}
	if has := Decide(nil, nil, all); !has.None() {
		return &snapshot.RefusedError{Dir: path, Reason: "stays: it has what exists nowhere else: " + has.String()}
	}
	return nil
}
