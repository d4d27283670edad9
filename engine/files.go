package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// tidyFiles packs what many snapshots have left, after a step. It costs nobody a step.
func (a *attempt) tidyFiles(ctx context.Context) {
	if a.kept == nil {
		return
	}
	if err := files.Tidy(ctx, a.Env, a.kept.Spec.Git, a.kept.Repo.Common); err != nil && ctx.Err() == nil {
		a.warn("what keeps the files could not be packed: " + err.Error())
	}
}

// Files is what keeps the files of threads.
func (e *Engine) Files() workspace.Keeper {
	return workspace.Keeper{
		Env: e.Env, Dirs: e.Dirs, FS: e.FS, Heads: e.Heads,
		Hidden: e.Hidden, Config: e.Config, Read: e.Nodes(), Warn: e.warn, RunDir: e.RunDir, Grace: e.grace(),
	}
}

// changed is what the step that was just made did to the files; nil: nothing, or it is
// not known.
func (a *attempt) changed(ctx context.Context, s protocol.Step) *protocol.FileChanges {
	if a.kept == nil || s.Files == nil {
		return nil
	}
	list, err := files.Diff(ctx, a.Env, a.kept.Spec.Git, a.before, s.Files.Tree)
	if err != nil || len(list) == 0 {
		return nil
	}
	return workspace.FileChanges(list)
}

// snapshot is what the agent is told of where the files are kept; "": nowhere.
func (a *attempt) snapshot() string {
	if a.kept == nil {
		return ""
	}
	return a.kept.Spec.String()
}

// keepFiles finds out what the files are before the step, and puts them back where the
// step is made once more. What is in the way of the agent is an error, while nobody is
// paid; that they cannot be kept is told, and costs the step no more than its files.
func (a *attempt) keepFiles(ctx context.Context) error {
	w := a.locked.workspace
	if w == nil || w.Mode == workspace.AsItIs {
		return nil
	}
	k, err := a.Files().OpenFiles(ctx, a.locked.id, a.pos.Dir(), w)
	if err != nil {
		return a.notKept(w, err)
	}
	if err := a.Files().PutBack(ctx, k, a.locked.id, a.task.files); err != nil {
		k.Release()
		return err
	}
	a.before = k.Spec.Tree
	last := a.pos.Thread.Last
	shared := a.cmd.Name == protocol.JoinAgent && a.pos.Workflow.Roles[a.task.role].Workspace == ""
	switch kept := last != nil && last.Files != nil; {
	case kept && last.Files.Tree == k.Spec.Tree:
	case kept && shared: // the children have been at work here; who else has is not known
		a.before = last.Files.Tree
	default:
		k.Spec.Before = k.Spec.Tree
	}
	a.kept = k
	return nil
}

// notKept tells that the files are not kept. Where there is no room for them it is an
// error, since nobody is paid yet; of a worktree of the thread's own, too: there is nothing
// else in it.
func (a *attempt) notKept(w *heads.Workspace, err error) error {
	var locked *protocol.Error
	var blocked *files.InTheWayError
	var full *files.NoRoomError
	switch {
	case errors.As(err, &locked), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &full):
		return fault.Hinted(fault.New(protocol.CodeFailed, "the files cannot be kept: there is %v", full), "make room, and then: "+a.again())
	case errors.As(err, &blocked):
		return fault.Hinted(fault.New(protocol.CodeFailed, "a restore of the files was cut off, and cannot be finished: %v", blocked), "move them away, and then: "+a.again())
	case w.Mode == workspace.InWorktree:
		return fault.Hinted(fault.New(protocol.CodeFailed, "the worktree of thread %s cannot be used: %v", a.locked.id, err), "uwf thread fork "+string(a.locked.head)+" makes another one")
	}
	a.warn("the files are not kept with this step: " + err.Error())
	return nil
}

// checkFiles tells if the state of the files that a step names is not there. The step
// counts all the same.
func (a *attempt) checkFiles(ctx context.Context, s protocol.Step) {
	switch {
	case a.kept == nil:
		return
	case s.Files == nil && s.Root == "": // who could not keep them has said so
		a.warn("agent " + place.Shown(s.Agent) + " does not keep the files: its steps have none")
		return
	case s.Files == nil:
		return
	}
	if s.Root != a.kept.Spec.Root || !files.Has(ctx, a.Env, a.kept.Spec.Git, s.Files.Tree) {
		a.warn(fmt.Sprintf("the agent says that the files are %s, which is not kept in %s", s.Files.Tree, a.kept.Spec.Git))
	}
}
