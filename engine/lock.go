package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/threadid"
)

// What locks threads; see package locker.
type (
	Locker = locker.Locker
	Lock   = locker.Lock
	Holder = locker.Holder
)

// locks are the engine's, files of the home unless it was given others.
func (e *Engine) locks() Locker {
	if e.Locks == nil {
		return locker.Files{Dir: e.Dirs.Locks()}
	}
	return e.Locks
}

// lockedThread is a thread under its lock: nobody else steps, resumes or ends it.
type lockedThread struct {
	id    string
	head  protocol.Hash
	ended *heads.Ended // nil: the thread is active
	lock  Lock
	// root is where the thread works, "" if that is where its start says.
	root string
	// workspace is how its files are kept; nil: they are not.
	workspace *heads.Workspace
	facts     heads.Facts // besides its chain
	since     time.Time
	// orphan is an agent that lives although whoever held the lock before is gone.
	// The run's record says so, too, unless the agent has damaged it.
	orphan process
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
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := e.mayWrite(); err != nil {
		return nil, err
	}
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), rundir.ProbePatience)
	defer cancel()
	lock, err := e.locks().Lock(brief, id)
	if errors.Is(err, locker.ErrLocked) {
		return nil, e.busy(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return e.take(ctx, id, lock)
}

// take looks up the thread whose lock is held.
func (e *Engine) take(ctx context.Context, id string, lock Lock) (*lockedThread, error) {
	h := &lockedThread{id: id, lock: lock}
	var err error
	if h.head, h.ended, err = e.lookup(ctx, id); err != nil {
		h.unknown = errors.Is(err, heads.ErrNoThread)
		h.release()
		return nil, err
	}
	h.since = e.Env.Now()
	h.orphan = e.orphan(ctx, id)
	h.note(h.orphan)
	return h, nil
}

// process is one that can be told from another with its id.
type process struct {
	pid   int // 0: none
	birth string
}

// note says in the lock's file who holds it, and which agent works for us. Without
// it a lock is as good, but a message cannot say who has it, and an agent that has
// removed its run directory is not seen once we are gone.
func (h *lockedThread) note(agent process) {
	_ = h.lock.Note(Holder{Pid: os.Getpid(), Since: h.since, Child: agent.pid, Birth: agent.birth})
}

// orphan is the living agent that the lock's file names, if any.
func (e *Engine) orphan(ctx context.Context, id string) process {
	who, err := e.locks().Holder(ctx, id)
	if err != nil || !proc.Lives(who.Child, who.Birth) {
		return process{}
	}
	return process{who.Child, who.Birth}
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

// lookup finds a thread's head, and its line in the history if it has ended. It
// looks twice, because a thread may be reopened between the looks at two files.
func (e *Engine) lookup(ctx context.Context, id string) (protocol.Hash, *heads.Ended, error) {
	if err := checkID(id); err != nil {
		return "", nil, err
	}
	head, ended, err := e.lookOnce(ctx, id)
	if errors.Is(err, heads.ErrNoThread) {
		head, ended, err = e.lookOnce(ctx, id)
	}
	if errors.Is(err, heads.ErrNoThread) {
		return "", nil, noThread(id, err)
	}
	return head, ended, err
}

func (e *Engine) lookOnce(ctx context.Context, id string) (protocol.Hash, *heads.Ended, error) {
	head, err := e.Heads.Head(ctx, id)
	if !errors.Is(err, heads.ErrNoThread) {
		return head, nil, err
	}
	ended, err := e.Heads.Ended(ctx, id)
	if err != nil {
		return "", nil, err
	}
	return ended.Head, &ended, nil
}

// Head returns the head of a thread, active or ended.
func (e *Engine) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	head, _, err := e.lookup(ctx, thread)
	if err != nil {
		return "", fault.Of(err)
	}
	return head, nil
}

// checkID keeps what is not an id out of file names.
func checkID(id string) error {
	if canonical, err := threadid.Parse(id); err != nil || canonical != id {
		return noThread(id, heads.ErrNoThread)
	}
	return nil
}

func noThread(id string, cause error) error {
	return &protocol.Error{
		Code: protocol.CodeNotFound, Message: fmt.Sprintf("there is no thread %q", id),
		Hints: []string{"uwf thread list --all"}, Err: cause,
	}
}

// busy says who holds a thread's lock.
func (e *Engine) busy(ctx context.Context, id string) error {
	err := fault.New(protocol.CodeLocked, "thread %s is being stepped by another process", id)
	if who, noteErr := e.locks().Holder(ctx, id); noteErr == nil {
		err = fault.New(protocol.CodeLocked, "thread %s is being stepped by pid %d since %s", id, who.Pid, e.clock(who.Since))
		if proc.Stopped(who.Pid) {
			err.Message += ", which is suspended"
			err = fault.Hinted(err, fmt.Sprintf("kill -CONT %d resumes it", who.Pid))
		}
	}
	return fault.Hinted(err, "uwf thread wait "+id, "uwf thread stop "+id)
}

// agentRuns says that an agent has outlived the process that started it.
func (e *Engine) agentRuns(id string, r rundir.Record) error {
	err := fault.New(protocol.CodeLocked, "an agent still works on thread %s", id)
	if r.Pid != 0 {
		err = fault.New(protocol.CodeLocked, "agent %s (pid %d) still works on thread %s since %s; the process that started it is gone",
			r.Agent, r.Pid, id, e.clock(time.UnixMilli(r.StartedAt)))
	}
	then := " uses its result"
	if r.Agent == protocol.CommandAgent { // what it prints nobody reads any more
		then = " runs the command again"
	}
	return fault.Hinted(err, "uwf thread wait "+id+"; uwf thread resume "+id+then, "uwf thread stop "+id)
}

// clock shows a time in the user's zone.
func (e *Engine) clock(t time.Time) string {
	return t.In(e.Env.Now().Location()).Format(time.RFC3339)
}
