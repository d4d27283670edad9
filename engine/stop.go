package engine

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// settle is how long a stepping process may take to notice that its agent has
// been stopped, beyond the agent's grace.
const settle = 10 * time.Second

// Stop ends a running step and those of the thread's children, even if the process that
// started it is gone; the thread stays active. It reports whether one ran. Errors are
// *protocol.Error.
func (e *Engine) Stop(ctx context.Context, thread string) (_ bool, err error) {
	defer fault.Coded(&err)
	h, stopped, err := e.seize(ctx, thread, false)
	if err != nil {
		return stopped, err
	}
	below, err := e.eachChild(ctx, h, false, e.Stop)
	h.release()
	stopped = stopped || below
	if err == nil && !stopped && h.ended != nil {
		err = fault.New(protocol.CodeFailed, "thread %s is %s: nothing runs", thread, h.ended.Status)
	}
	return stopped, err
}

// Kill does what Stop does, and archives the thread and its children as cancelled. Errors are
// *protocol.Error.
func (e *Engine) Kill(ctx context.Context, thread string) (err error) {
	defer fault.Coded(&err)
	h, stopped, err := e.seize(ctx, thread, true)
	if err != nil {
		return err
	}
	defer h.release()
	if stopped && h.ended != nil { // it was played again
		return nil
	}
	return e.kill(ctx, h)
}

// kill ends a thread that is held. A result that waits is added first, and what was cut off is
// settled; if that cannot be done, the files stay as they are.
func (e *Engine) kill(ctx context.Context, h *lockedThread) error {
	r := request{Request: decide.Request{Verb: decide.Kill}}
	err := e.settle(ctx, h, Work{})
	e = e.reading(e.Reader.Recalling().Remembering().Knowing(h.id, &h.facts))
	if err == nil {
		_, err = e.ask(ctx, h, r)
	}
	if err != nil && h.ended == nil && e.Reader.CutOff(h.id) {
		e.warn("thread " + h.id + " is cancelled with its files as they are: " + err.Error())
		r.KeepFiles = true
		_, err = e.ask(ctx, h, r)
	}
	if err != nil && h.ended == nil { // it cannot even be read
		return e.killAll(ctx, h)
	}
	return err
}

// killAll ends a thread and its children as cancelled.
func (e *Engine) killAll(ctx context.Context, h *lockedThread) error {
	if _, err := e.eachChild(ctx, h, true, func(ctx context.Context, child string) (bool, error) {
		return true, e.Kill(ctx,
			child)
	}); err != nil {
		return err
	}
	e.settleChildren(ctx, h)
	if err := e.killOthers(ctx, h); err != nil {
		return err
	}
	return e.cancel(ctx, h)
}

// settleChildren settles what is open of children that have ended: after the thread's end nobody can.
func (e *Engine) settleChildren(ctx context.Context, h *lockedThread) {
	pos, err := e.Reader.Position(ctx, h.id, h.head)
	if err != nil {
		return
	}
	for _, k := range pos.Children {
		if !k.Open {
			continue
		}
		if _, err = e.Stop(ctx, k.ID); err == nil {
			_, err = e.driving(Work{}).drive(ctx, k.ID, nil, Work{Steps: 1})
		}
		if err != nil {
			e.warn("child " + k.Key + ": " + err.Error())
		}
	}
}

// killOthers ends the children that the thread has asked for at steps that were undone, or in
// earlier attempts: nobody asks for them any more.
func (e *Engine) killOthers(ctx context.Context, h *lockedThread) error {
	all, err := e.Reader.Heads.AllFacts(ctx)
	if all == nil {
		return err
	}
	for id, facts := range all {
		if facts.Parent == nil || facts.Parent.Thread != h.id {
			continue
		}
		if _, ended, err := e.Reader.Lookup(ctx, id); err != nil || ended != nil {
			continue
		}
		if err := e.Kill(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// cancel ends a thread that is held, and whose children have ended, as cancelled.
func (e *Engine) cancel(ctx context.Context, h *lockedThread) error {
	ended := heads.Ended{
		Thread: h.id, Workflow: e.workflowOf(ctx, h.head), Head: h.head,
		Status: protocol.StatusCancelled, CompletedAt: e.nowMs(),
	}
	if err := e.Reader.Heads.Archive(ctx, ended); err != nil {
		return err
	}
	h.ended = &ended
	e.report(Event{Kind: ThreadKilled, Step: StepInfo{Thread: h.id}})
	if facts, err := e.Reader.Heads.Facts(ctx, h.id); err == nil {
		e.Files().RemoveUnused(ctx, worktree.Ended{ID: h.id, Head: h.head, Workspace: facts.Workspace, Killed: true})
	}
	return nil
}

// eachChild calls do for the thread's children that have not ended, and prevents others from
// being started. The thread is locked, so nobody joins them meanwhile. A thread that cannot be
// read has no children. end: the thread will be ended.
func (e *Engine) eachChild(ctx context.Context, h *lockedThread, end bool, do func(ctx context.Context,
	child string) (bool, error)) (done bool, err error) {
	pos, err := e.Reader.Position(ctx, h.id, h.head)
	if err != nil || h.ended != nil || len(pos.Children) == 0 {
		return false, nil
	}
	if err := e.Reader.RunDir(h.id).HoldBack(end); err != nil {
		return false, err
	}
	var faults []error
	for _, k := range pos.Children {
		if k.Head == "" || k.Ended != nil {
			continue
		}
		did, err := do(ctx, k.ID)
		if _, ended, lookErr := e.Reader.Lookup(ctx, k.ID); err != nil && (lookErr != nil || ended == nil) {
			faults = append(faults, err)
		}
		done = done || did
	}
	if len(faults) > 0 {
		return done, faults[0]
	}
	return done, nil
}

// workflowOf is the workflow that a head's thread runs, or "" if it cannot be read: a damaged
// thread can still be ended.
func (e *Engine) workflowOf(ctx context.Context, head protocol.Hash) protocol.Hash {
	t, err := thread.Open(ctx, e.Reader.Store, head)
	if err != nil {
		return ""
	}
	return t.Start.Workflow
}

// seize stops what runs on a thread and takes the thread's lock. A process that makes several
// steps stops altogether: the request outlives its agent. end tells it that the thread will be
// ended.
func (e *Engine) seize(ctx context.Context, id string, end bool) (*lockedThread, bool, error) {
	if err := e.Reader.MayWrite(); err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.grace()+settle, e.Reader.HeldBy(ctx, id))
	defer cancel()
	stopped := false
	for wait := retry.MinWait; ; wait = min(2*wait, retry.MaxWait) {
		h, err := e.lock(ctx, id)
		if err == nil {
			orphan, err := e.stopOrphan(ctx, h)
			if err != nil {
				h.release()
				return nil, stopped, err
			}
			return h, stopped || orphan, nil
		}
		if !fault.Is(err, protocol.CodeLocked) {
			return nil, stopped, err
		}
		ran, err := e.stopRun(ctx, id, end)
		stopped = stopped || ran
		if err != nil {
			return nil, stopped, err
		}
		if err := retry.Pause(ctx, wait); err != nil {
			return nil, stopped, err
		}
	}
}

// stopRun stops the agent of a stepping process; that process then records the end and gives
// the thread back. One that has no agent yet, or waits before it starts another one, finds the
// request itself.
func (e *Engine) stopRun(ctx context.Context, id string, end bool) (bool, error) {
	dir := e.Reader.RunDir(id)
	r := dir.Read()
	if r.Status != rundir.Running || r.AgentPid() == 0 || !dir.Alive(r) {
		if r.Status != rundir.Running && !r.Missing {
			_ = dir.RequestStop(r, end) // asked again and again until the process gives up the thread
		}
		return r.Status == rundir.Starting, nil
	}
	if err := dir.RequestStop(r, end); err != nil {
		return false, err
	}
	if r.AgentEnded() {
		return true, nil // the process that started it has not seen it yet, or cannot
	}
	same := func() bool {
		now := dir.Read()
		return now.ID() == r.ID() && now.Status == rundir.Running && now.AgentPid() == r.Pid && dir.Alive(r) &&
			!r.AgentEnded()
	}
	return true, proc.StopGroup(ctx, r.Pid, e.grace(), same)
}

// stopOrphan stops an agent whose stepping process is gone. A result that it has finished can
// still be adopted.
func (e *Engine) stopOrphan(ctx context.Context, h *lockedThread) (bool, error) {
	dir := e.Reader.RunDir(h.id)
	r := dir.Read()
	if !e.agentAlive(ctx, h, dir, r) {
		return false, nil
	}
	pid := r.AgentPid()
	if h.orphan.Pid != 0 {
		pid = h.orphan.Pid
	}
	alive := func() bool { return dir.Alive(r) || h.orphan.Lives() }
	if err := proc.StopHolders(ctx, dir.File(runfiles.LockFile), pid, e.grace(), alive); err != nil {
		return false, err
	}
	h.orphan = locker.Process{}
	h.note(h.orphan)
	if _, finished := dir.Finished(); !finished && !r.Damaged && !r.Missing {
		r.Status = rundir.Stopped
		return true, dir.Write(r)
	}
	return true, nil
}
