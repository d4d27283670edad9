package engine

import (
	"context"
	"io"
	"os"

	"github.com/united-workforce/uwf/engine/internal/background"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
)

// WorkerLog is the file in which a thread's background worker says what it does.
func (e *Engine) WorkerLog(thread string) string {
	return e.Reader.RunDir(thread).File(runfiles.LogFile)
}

// Background is [Engine.Do] in a process that nobody waits for. It returns with status running
// once the first agent has begun, or, once it is clear that none will, with what the worker
// would have returned.
//
// The process is this program once more: its main begins with Main of package host. The lock is never free
// in between: it is taken here, and the worker inherits it. Whenever one of the two processes is killed,
// the other keeps the lock until it ends.
func (e *Engine) Background(ctx context.Context, thread string, w Work) (out protocol.StepOutput, err error) {
	if err := e.can(w); err != nil {
		return out, err
	}
	h, err := e.lock(ctx, thread)
	if err == nil {
		// Our copy only: the file is the worker's from now on.
		defer func() { _ = h.lock.Unlock() }()
		out, err = e.handOver(ctx, h, w)
	}
	if err != nil {
		return out, fault.Ended(ctx, err)
	}
	return out, nil
}

// handOver lets a worker do what is to be done on a thread that is held.
func (e *Engine) handOver(ctx context.Context, h *lockedThread, w Work) (protocol.StepOutput, error) {
	lock, ok := h.lock.(*durable.Held)
	if !ok {
		return protocol.StepOutput{}, errNotInherited()
	}
	out, err := background.Job{
		Env: e.Reader.Env, Given: e.given(), Dir: e.Reader.RunDir(h.id), Lock: lock, Work: w, Patience: e.grace() + settle,
		Call: background.Call{Home: e.Reader.Dirs.Home, Store: e.Reader.Dirs.Store, Thread: h.id, Debug: e.Log != nil},
	}.Start(ctx)
	out.Error.Advise(e.Reader.Hints)
	return out, err
}

// errNotInherited: only a lock that is a file can be handed on to a worker.
func errNotInherited() error {
	return fault.New(protocol.CodeFailed, "this engine cannot work in the background: its locks are no files")
}

// Worker does what [Engine.Background] was asked to do, in the process that it started: lock
// is the descriptor of the thread's lock, and Background reads the first report from tell.
// Errors are *protocol.Error; one that occurs before an agent has begun is written to tell,
// too.
func (e *Engine) Worker(ctx context.Context, thread string, lock uintptr, tell io.Writer) error {
	voice := background.Voice{To: tell}
	with := *e
	with.Events = func(ev Event) {
		if e.Events != nil {
			e.Events(ev)
		}
		if ev.Kind != AgentStarted {
			return
		}
		if out, err := e.Reader.Show(context.WithoutCancel(ctx), thread); err == nil {
			if out.Status == protocol.StatusIdle { // it waits to start the agent
				out.Status = protocol.StatusRunning
			}
			voice.Outcome(out)
		}
	}
	outs, err := with.work(ctx, thread, lock)
	switch {
	case err != nil:
		c := fault.Of(err)
		voice.Failed(c)
		return c
	case len(outs) > 0:
		voice.Outcome(outs[len(outs)-1])
	}
	return nil
}

func (e *Engine) work(ctx context.Context, thread string, lock uintptr) ([]protocol.StepOutput, error) {
	if err := status.CheckID(thread); err != nil {
		return nil, err
	}
	if err := e.Reader.MayWrite(); err != nil {
		return nil, err
	}
	files, ok := e.Reader.Locker().(locker.Files)
	if !ok {
		return nil, errNotInherited()
	}
	held, err := files.Inherited(os.NewFile(lock, "lock"), thread)
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeUsage, Message: "only an engine can start a worker: " + err.Error(),
			Err: err}
	}
	h, err := e.take(ctx, thread, held)
	if err != nil {
		return nil, err
	}
	var w Work
	if err := background.Work(e.Reader.RunDir(thread), &w); err != nil {
		h.release()
		return nil, err
	}
	return e.resting().Until(ctx, thread, func() ([]protocol.StepOutput, error) {
		return e.driving(w).drive(ctx, thread, h, w)
	})
}
