package workspace

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/runfiles"
)

// MadeBy is what a thread with a head has made, in a worktree of its own, of the files that
// it began with; ok is false if it had no worktree. Errors are those of [Keeper.StepFiles].
func (e Keeper) MadeBy(ctx context.Context, head protocol.Hash) (made StepFiles, ok bool, err error) {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil {
		return made, false, fault.Of(err)
	}
	if w := t.Start.Workspace; w == nil || w.Mode != InWorktree || w.Tree == "" {
		return made, false, nil
	}
	if made, err = e.FilesOf(ctx, t); err != nil {
		return made, true, err
	}
	made.Before = files.Instead(ctx, e.Env, made.store, t.Start.Workspace.Tree)
	return made, true, nil
}

// Merge is what a tree is with what others have made of theirs, in their order. Where two
// have changed the same places the paths are returned, and no tree. Nothing is written but
// objects.
func (e Keeper) Merge(ctx context.Context, k *Keeping, tree protocol.Tree, made []StepFiles) (merged protocol.Tree, conflicts []string, err error) {
	for _, m := range made {
		for _, part := range []protocol.Tree{m.Before, m.After} {
			if err := e.Bring(ctx, k.Spec.Git, part); err != nil {
				return "", nil, err
			}
		}
		next, err := files.MergeTrees(ctx, e.Env, k.Spec.Git, m.Before, tree, m.After)
		var conflict *files.ConflictError
		switch {
		case errors.As(err, &conflict):
			conflicts = append(conflicts, conflict.Paths...)
		case errors.Is(err, files.ErrTooOld):
			return "", nil, fault.Of(err)
		case err != nil:
			return "", nil, err
		default:
			tree = next
		}
	}
	if len(conflicts) == 0 {
		return tree, nil, nil
	}
	slices.Sort(conflicts)
	conflicts = slices.Compact(conflicts)
	return "", conflicts[:min(len(conflicts), maxListed)], nil
}

// Lay makes the files of a thread those of a tree that others have made. If that is cut off,
// the next step of the thread ends it.
func (e Keeper) Lay(ctx context.Context, k *Keeping, id string, to protocol.Tree) error {
	_, err := files.Restore(ctx, e.Env, k.Spec, k.Spec.Tree, to, e.RunDir(id).File(runfiles.RestoreFile))
	var unsaved *files.UnsavedError
	var blocked *files.InTheWayError
	switch {
	case errors.As(err, &unsaved):
		return fault.Hinted(&protocol.Error{Code: protocol.CodeFailed, Message: "what the children have made is not written: somebody has just changed " + Some(unsaved.Paths), Err: err},
			"uwf thread step "+id+" tries again")
	case errors.As(err, &blocked):
		return fault.Hinted(&protocol.Error{Code: protocol.CodeFailed, Message: "what the children have made is not written: " + place.Shown(blocked.Error()), Err: err},
			"move them away", "uwf thread step "+id+" tries again")
	case err != nil:
		return err
	}
	k.Spec.Tree = to
	return nil
}
