package engine

import (
	"context"
	"os"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/threadfiles"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// Files is what keeps the files of threads.
func (e *Engine) Files() workspace.Keeper {
	return workspace.Keeper{
		Env: e.Env, Dirs: e.Dirs, FS: e.FS, Heads: e.Heads,
		Hidden: e.Hidden, Config: e.Config, Read: e.Nodes(), Warn: e.warn, RunDir: e.RunDir, Grace: e.grace(), Hold: e.Hold,
	}
}

// ThreadFiles is what people do with the files of threads between their steps.
func (e *Engine) ThreadFiles() threadfiles.Files {
	lock := func(ctx context.Context, id string) (threadfiles.Locked, error) {
		h, err := e.lock(ctx, id)
		if err != nil {
			return threadfiles.Locked{}, err
		}
		if h.facts, err = e.Heads.Facts(ctx, id); err != nil {
			h.release()
			return threadfiles.Locked{}, err
		}
		if e.CutOff(id) {
			h.release()
			err := fault.New(protocol.CodeFailed, "the files of thread %s are on their way to another step: a change of them was cut off", id)
			return threadfiles.Locked{}, fault.Hinted(err, "uwf thread step "+id+" finishes it first")
		}
		return threadfiles.Locked{Thread: h.files(), Release: h.release}, nil
	}
	return threadfiles.Files{Keeper: e.Files(), Lock: lock, Show: e.Show}
}

// files is what a thread's files are about.
func (h *lockedThread) files() workspace.Thread {
	return workspace.Thread{ID: h.id, Head: h.head, Ended: h.ended != nil, Facts: h.facts}
}

// keepFiles begins to keep the files of the attempt with its step.
func (a *attempt) keepFiles(ctx context.Context) (err error) {
	a.kept, err = a.Files().Before(ctx, workspace.Step{
		Thread: a.locked.files(), Dir: a.pos.Dir(), Last: a.pos.Thread.Last, PutBack: a.task.putBack, Known: a.task.known, Open: a.task.kept,
		Joins: a.cmd.Name == protocol.JoinAgent && a.pos.Workflow.Roles[a.task.role].Workspace == "",
		Again: a.again(),
	})
	a.locked.kept, a.task.kept = a.kept, nil
	return err
}

// Follow brings the worktree of a thread whose head was moved to the files of its new last
// step, if it holds exactly the files of the head before. If it holds others, or the files are
// not available, Follow does nothing: the next step reports it.
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
	before, now := e.Files().LastKept(ctx, was), e.Files().LastKept(ctx, head)
	if before == nil || now == nil {
		return nil
	}
	k, err := e.Files().OpenFiles(ctx, id, w.Root, w)
	if err != nil {
		return err
	}
	defer k.Release()
	return e.Files().Follow(ctx, k, id, before, now)
}
