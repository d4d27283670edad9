package engine

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// Locker locks threads; see package locker.
type Locker = locker.Locker

// lockedThread is a thread under its lock: nobody else steps, resumes or ends it.
type lockedThread struct {
	id    string
	head  protocol.Hash
	ended *heads.Ended // nil: the thread is active
	lock  locker.Lock
	facts heads.Facts // besides its chain
	// elsewhere are the files that it is about, if they are not where it works.
	elsewhere workspace.Elsewhere
	since     time.Time
	// orphan is an agent that is still alive although the previous holder of the lock is gone.
	// The run's record names it, too, unless the agent has damaged it.
	orphan locker.Process
	// unknown: there is no such thread.
	unknown bool
	// open reports whether something of it is under way, or was cut off.
	open func() bool
	// inStep: a step has begun and its end has not been reported yet. Its outcome, farewell, is
	// reported after that.
	inStep   bool
	farewell *Event
	// kept is the work tree of its attempt; nil: its files are not kept.
	kept *workspace.Keeping
	// barrier keeps everybody away who would run something; barred says how it is opened.
	barrier decide.Barrier
	barred  error
}

// lock takes a thread's lock, or fails at once: it waits only for a process that checks
// whether the lock is held.
func (e *Engine) lock(ctx context.Context, id string) (*lockedThread, error) {
	if err := status.CheckID(id); err != nil {
		return nil, err
	}
	if err := e.MayWrite(); err != nil {
		return nil, err
	}
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), rundir.ProbePatience)
	defer cancel()
	lock, err := e.Locker().Lock(brief, id)
	if errors.Is(err, locker.ErrLocked) {
		return nil, e.HeldBy(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return e.take(ctx, id, lock)
}

// take looks up the thread whose lock is held.
func (e *Engine) take(ctx context.Context, id string, lock locker.Lock) (*lockedThread, error) {
	h := &lockedThread{id: id, lock: lock}
	h.open = func() bool { return e.IsOpen(h.id, h.head) }
	var err error
	if h.head, h.ended, err = e.Lookup(ctx, id); err != nil {
		h.unknown = errors.Is(err, heads.ErrNoThread)
		h.release()
		return nil, err
	}
	h.since = e.Env.Now()
	h.orphan = locker.Orphan(ctx, e.Locker(), id)
	h.note(h.orphan)
	return h, nil
}

// note writes into the lock's file who holds it, and which agent works for us. The lock holds
// without that, but messages cannot name its holder, and an agent that removed its run
// directory goes unnoticed once we are gone.
func (h *lockedThread) note(agent locker.Process) {
	_ = h.lock.Note(locker.Holder{Pid: os.Getpid(), Since: h.since, Child: agent.Pid, Birth: agent.Birth})
}

// release gives the lock back. The lock file of a thread that is gone is removed, so that they
// do not pile up; if that fails, a small file stays. That of an ended thread with something open
// stays: [status.Reader.Due] looks for it.
func (h *lockedThread) release() {
	if h.unknown || h.ended != nil && !h.open() {
		_ = h.lock.RemoveAndUnlock()
		return
	}
	_ = h.lock.Unlock()
}

// Exclusive locks a thread for a change other than a step: until release is called, nobody
// else steps, resumes or ends it. It fails at once with code locked if a step is running, even
// one whose engine is gone. Errors are *protocol.Error.
func (e *Engine) Exclusive(ctx context.Context, thread string) (release func(), err error) {
	h, err := e.lock(ctx, thread)
	if err != nil {
		return nil, fault.Of(err)
	}
	_, err = e.lastRun(ctx, h)
	if err == nil && e.CutOff(h.id) {
		err = fault.Hinted(fault.New(protocol.CodeFailed, "a change of the head and the files of thread %s was cut off",
			h.id), "uwf thread step "+h.id+" settles it")
	}
	if err != nil {
		h.release()
		return nil, fault.Of(err)
	}
	return h.release, nil
}

// Waiting is the step that an interrupted run of a thread has finished, and that its next step adds
// to the thread; "": none.
func (e *Engine) Waiting(ctx context.Context, thread string) protocol.Hash {
	head, _, err := e.Lookup(ctx, thread)
	dir := e.RunDir(thread)
	if last := dir.Read(); err != nil || last.Missing || !last.Unfinished(head) {
		return ""
	}
	left, _ := dir.Finished()
	return left.StepHash
}

// lastRun is the record of the thread's last run; an error if its agent is
// still at work on this head.
func (e *Engine) lastRun(ctx context.Context, h *lockedThread) (rundir.Record, error) {
	dir := e.RunDir(h.id)
	r := dir.Read()
	if e.agentAlive(ctx, h, dir, r) {
		return r, e.Outlived(h.id, r)
	}
	return r, nil
}

// agentAlive reports whether the agent of the thread's last run is still working on this head,
// whatever it has done to its run directory.
func (e *Engine) agentAlive(ctx context.Context, h *lockedThread, dir rundir.Dir, r rundir.Record) bool {
	return h.orphan.Pid != 0 || ((r.Unfinished(h.head) || r.Missing) && dir.SurelyAlive(ctx, r))
}

// hasEnded returns the error for an operation that only an active thread allows.
func hasEnded(h *lockedThread) error {
	err := fault.New(protocol.CodeFailed, "thread %s is %s: it takes no more steps", h.id, h.ended.Status)
	if h.ended.Status == protocol.StatusCompleted {
		err = fault.Hinted(err, "uwf thread resume "+h.id+" -p '<what else to do>'")
	}
	return fault.Hinted(err, "uwf thread fork "+string(h.head))
}
