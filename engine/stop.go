package engine

import (
	"cmp"
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

// settle is the time that a stepping process has to notice that its agent was stopped, in addition to the
// agent's grace period.
const settle = 10 * time.Second

// Stop ends the running steps of a thread and its children, even if the process that started it is gone. The
// thread stays active. Stop reports whether a step was running. Errors are *protocol.Error.
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
		err = fault.New(protocol.CodeFailed, "thread %s has already ended: %s", thread, h.ended.Status).Because("ended-before", "thread", thread)
	}
	return stopped, err
}

// Kill does the same as Stop, and archives the thread and its children as cancelled. Errors are
// *protocol.Error.
func (e *Engine) Kill(ctx context.Context, thread string) (err error) {
	defer fault.Coded(&err)
	_, before, _ := e.Reader.Lookup(ctx, thread) // a thread that isn't readable can be killed
	h, stopped, err := e.seize(ctx, thread, true)
	if err != nil {
		return err
	}
	defer h.release()
	if stopped && before != nil && h.ended != nil { // it was being retried
		return nil
	}
	return e.kill(ctx, h)
}

// kill cancels a locked thread. It first adopts a pending result and settles interrupted changes; if that
// fails, the files stay as they are.
func (e *Engine) kill(ctx context.Context, h *lockedThread) error {
	r := request{Request: decide.Request{Verb: decide.Kill}}
	err := e.settle(ctx, h, Work{})
	e = e.reading(e.Reader.Recalling().Remembering().Knowing(h.id, &h.facts))
	if err == nil {
		_, err = e.ask(ctx, h, r)
	}
	if err != nil && h.ended == nil && e.Reader.CutOff(h.id) {
		e.warn("cancelled thread " + h.id + " without restoring its files: " + err.Error())
		r.KeepFiles = true
		_, err = e.ask(ctx, h, r)
	}
	if err != nil && h.ended == nil { // the thread is unreadable
		return e.killAll(ctx, h)
	}
	return err
}

// killAll cancels a thread and its children.
func (e *Engine) killAll(ctx context.Context, h *lockedThread) error {
	kill := func(ctx context.Context, child string) (bool, error) { return true, e.Kill(ctx, child) }
	if _, err := e.eachChild(ctx, h, true, kill); err != nil {
		return err
	}
	e.settleChildren(ctx, h)
	if err := e.killOthers(ctx, h); err != nil {
		return err
	}
	return e.cancel(ctx, h)
}

// settleChildren settles unfinished work of ended children. This is impossible after the parent has ended.
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

// killOthers cancels children that belong to undone steps or earlier attempts, since they are no longer
// needed.
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

// cancel archives a locked thread as cancelled. Its children must have ended.
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

// eachChild calls do for the thread's children that have not ended, and prevents others from starting. The
// thread is locked, so no other process can join the children. An unreadable thread counts as having no
// children. end means that the thread is about to end.
func (e *Engine) eachChild(ctx context.Context, h *lockedThread, end bool, do func(ctx context.Context,
	child string) (bool, error)) (done bool, err error) {
	pos, err := e.Reader.Position(ctx, h.id, h.head)
	if err != nil || h.ended != nil || len(pos.Children) == 0 {
		return false, nil
	}
	if err := e.Reader.RunDir(h.id).BlockChildren(end); err != nil {
		return false, err
	}
	for _, k := range pos.Children {
		if k.Head == "" || k.Ended != nil {
			continue
		}
		did, failed := do(ctx, k.ID)
		if _, ended, lookErr := e.Reader.Lookup(ctx, k.ID); lookErr != nil || ended == nil {
			err = cmp.Or(err, failed)
		}
		done = done || did
	}
	return done, err
}

// workflowOf returns the workflow of a head's thread, or "" if it is unreadable: a damaged thread can still
// be ended.
func (e *Engine) workflowOf(ctx context.Context, head protocol.Hash) protocol.Hash {
	t, err := thread.Open(ctx, e.Reader.Store, head)
	if err != nil {
		return ""
	}
	return t.Start.Workflow
}

// seize stops what runs on a thread and takes its lock. A process that makes several steps stops altogether,
// since the request stays after its agent has ended. end announces that the thread will be ended.
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

// stopRun stops the agent of a stepping process, which then records the end and releases the thread. A
// process that has no agent yet, or waits between two agents, finds the request itself.
func (e *Engine) stopRun(ctx context.Context, id string, end bool) (bool, error) {
	dir := e.Reader.RunDir(id)
	r := dir.Read()
	if r.Status != rundir.Running || r.AgentPid() == 0 || !dir.Alive(r) {
		if r.Status != rundir.Running && !r.Missing {
			_ = dir.RequestStop(r, end) // repeated until the process releases the thread
		}
		return r.Status == rundir.Starting, nil
	}
	if err := dir.RequestStop(r, end); err != nil {
		return false, err
	}
	if r.AgentEnded() {
		return true, nil // its process has not noticed, or cannot
	}
	same := func() bool {
		now := dir.Read()
		return now.ID() == r.ID() && now.Status == rundir.Running && now.AgentPid() == r.Pid && dir.Alive(r) &&
			!r.AgentEnded()
	}
	return true, proc.StopGroup(ctx, r.Pid, e.grace(), same)
}

// stopOrphan stops an agent whose stepping process is gone. Its finished result can still be adopted.
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
