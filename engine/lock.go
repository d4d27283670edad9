package engine

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
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
	// orphan is an agent that lives although whoever held the lock before is gone.
	// The run's record says so, too, unless the agent has damaged it.
	orphan locker.Process
	// unknown: there is no such thread.
	unknown bool
	// inStep: a step has begun and has not been told of as done. What it leads to, farewell,
	// is told after that.
	inStep   bool
	farewell *Event
}

// lock takes a thread's lock, or fails at once: it only outwaits somebody who
// looks whether the lock is held.
func (e *Engine) lock(ctx context.Context, id string) (*lockedThread, error) {
	if err := status.CheckID(id); err != nil {
		return nil, err
	}
	if err := e.mayWrite(); err != nil {
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

// note says in the lock's file who holds it, and which agent works for us. Without
// it a lock is as good, but a message cannot say who has it, and an agent that has
// removed its run directory is not seen once we are gone.
func (h *lockedThread) note(agent locker.Process) {
	_ = h.lock.Note(locker.Holder{Pid: os.Getpid(), Since: h.since, Child: agent.Pid, Birth: agent.Birth})
}

// release gives the lock back. The lock file goes with the thread, so that they
// do not pile up; should that fail, there is a small file too many.
func (h *lockedThread) release() {
	if h.ended != nil || h.unknown {
		_ = h.lock.RemoveAndUnlock()
		return
	}
	_ = h.lock.Unlock()
}

// Exclusive keeps a thread as it is until release is called, so that somebody else
// than a step may change it: nobody steps, resumes or ends it. It fails at once
// with code locked if a step is running, also one whose engine is gone.
// Errors are *protocol.Error.
func (e *Engine) Exclusive(ctx context.Context, thread string) (release func(), err error) {
	h, err := e.lock(ctx, thread)
	if err != nil {
		return nil, fault.Of(err)
	}
	if _, err := e.lastRun(ctx, h); err != nil {
		h.release()
		return nil, fault.Of(err)
	}
	return h.release, nil
}
