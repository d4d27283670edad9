package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// Step is one that is about to be made, in a work tree whose files are kept with it.
type Step struct {
	Thread Thread
	Dir    string       // where the thread works
	Last   *thread.Step // that it follows; nil: it is the first one
	// PutBack are the files that it begins with, in the place of those that are there; "": it begins
	// with these. Known are files that are kept with a step.
	PutBack, Known protocol.Tree
	Open           *Keeping // its work tree, with these files in it; nil: it is opened now
	Joins          bool     // the results of children that have worked in the same directory
	Again          string   // the command that tries it again
}

// Before finds out what the files are before a step, and restores them if the step is made
// again; nil: they are not kept. It fails if something would be in the agent's way, while
// nobody is paid yet. If the files just cannot be kept, it warns, and the step goes on without
// them.
func (e Keeper) Before(ctx context.Context, s Step) (*Keeping, error) {
	w := s.Thread.Facts.Workspace
	if w == nil || w.Mode == AsItIs {
		return nil, e.claimedAround(ctx, s.Dir, s.Thread.ID)
	}
	k, err := s.Open, error(nil)
	if k == nil {
		k, err = e.OpenFiles(ctx, s.Thread.ID, s.Dir, w)
	}
	if err != nil {
		return nil, e.notKept(s, err)
	}
	if s.PutBack != "" && s.Open == nil {
		if err := e.replace(ctx, k, s.Thread.ID, s.Known, s.PutBack); err != nil {
			k.Release()
			return nil, err
		}
	}
	k.Before = k.Spec.Tree
	if s.Last != nil && s.Last.Files != nil {
		k.reports = s.Last.Files.Left
	}
	switch kept := s.Last != nil && s.Last.Files != nil; {
	case kept && s.Last.Files.Tree == k.Spec.Tree:
	case kept && s.Joins: // the children have been at work here; who else has is not known
		k.Before = s.Last.Files.Tree
	default:
		k.Spec.Before = k.Spec.Tree
	}
	return k, nil
}

// notKept warns that the files are not kept. It fails if there is no room for them, since
// nobody is paid yet, and for a worktree of the thread's own: there is nothing else in it.
func (e Keeper) notKept(s Step, err error) error {
	var locked *protocol.Error
	var blocked *files.InTheWayError
	var full *files.NoRoomError
	switch {
	case errors.As(err, &locked), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &full):
		return fault.Hinted(fault.New(protocol.CodeFailed, "the files cannot be kept: there is %v", full), "make room, and then: "+s.Again)
	case errors.As(err, &blocked):
		return fault.Hinted(fault.New(protocol.CodeFailed, "a restore of the files was cut off, and cannot be finished: %v", blocked), "move them away, and then: "+s.Again)
	case s.Thread.Facts.Workspace.Mode == InWorktree:
		return fault.Hinted(fault.New(protocol.CodeFailed, "the worktree of thread %s cannot be used: %v", s.Thread.ID, err), "uwf thread fork "+string(s.Thread.Head)+" makes another one")
	}
	e.Warn("the files are not kept with this step: " + err.Error())
	return nil
}

// Told is what an agent is told of where the files are kept; "": nowhere.
func (k *Keeping) Told() string {
	if k == nil {
		return ""
	}
	return k.Spec.String()
}

// Check warns if the state of the files that a step names is missing, and names what it leaves
// out, unless the step before has left out the same. The step counts all the same.
func (k *Keeping) Check(ctx context.Context, s protocol.Step) {
	switch {
	case k == nil:
	case s.Files == nil && s.Root == "": // who could not keep them has said so
		k.by.Warn("agent " + place.Shown(s.Agent) + " does not keep the files: its steps have none")
	case s.Files == nil:
	case s.Root != k.Spec.Root || !files.Has(ctx, k.by.Env, k.Spec.Git, s.Files.Tree):
		k.by.Warn(fmt.Sprintf("the agent says that the files are %s, which is not kept in %s", s.Files.Tree, k.Spec.Git))
	case len(s.Files.Left) > 0 && !slices.Equal(s.Files.Left, k.reports):
		k.by.Warn("the step keeps the files without " + Some(s.Files.Left) + ": only " + place.Shown(k.Spec.Root) + " has what is there")
	}
}

// Changed is what a step that was just made did to the files; nil: nothing, or it is
// not known.
func (k *Keeping) Changed(ctx context.Context, s protocol.Step) *protocol.FileChanges {
	if k == nil || s.Files == nil {
		return nil
	}
	changed := k.by.changed(ctx, k.Spec.Git, k.Before, s.Files.Tree)
	if len(s.Files.Left) > 0 {
		if changed == nil {
			changed = &protocol.FileChanges{}
		}
		changed.Left = s.Files.Left
	}
	return changed
}

// changed is what differs between two states, for people to look at; nil: nothing, or it is
// not known.
func (e Keeper) changed(ctx context.Context, store string, from, to protocol.Tree) *protocol.FileChanges {
	list, err := files.Diff(ctx, e.Env, store, from, to)
	if err != nil || len(list) == 0 {
		return nil
	}
	return FileChanges(list)
}

// Tidy packs what many snapshots have left, after a step. It never fails a step.
func (k *Keeping) Tidy(ctx context.Context) {
	if k == nil {
		return
	}
	if err := files.Tidy(ctx, k.by.Env, k.Spec.Git, k.Repo.Common); err != nil && ctx.Err() == nil {
		k.by.Warn("what keeps the files could not be packed: " + err.Error())
	}
}
