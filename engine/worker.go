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

// WorkerLog returns the log file of the thread's background worker.
func (e *Engine) WorkerLog(thread string) string {
	return e.Reader.RunDir(thread).File(runfiles.LogFile)
}

// Background does the same as [Engine.Do], but in a detached process. It returns status running once the
// first agent has started. If no agent will start, it returns the worker's result.
//
// The process runs this program again, whose main must call Main of package host first. The lock is taken
// here and inherited by the worker, so it is never free in between. If either process is killed, the other
// keeps the lock until it ends.
func (e *Engine) Background(ctx context.Context, thread string, w Work) (out protocol.StepOutput, err error) {
	if err := e.can(w); err != nil {
		return out, err
	}
	h, err := e.lock(ctx, thread)
	if err == nil {
		// Closes only our copy; the worker keeps its own.
		defer func() { _ = h.lock.Unlock() }()
		out, err = e.handOver(ctx, h, w)
	}
	if err != nil {
		return out, fault.Ended(ctx, err)
	}
	return out, nil
}

// handOver passes the work on a locked thread to a worker.
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

// errNotInherited is returned if the lock is not a file, since a worker can only inherit files.
func errNotInherited() error {
	return fault.New(protocol.CodeFailed, "this engine cannot run in the background: its locks are not files")
}

// Worker does the work of [Engine.Background] in the process that Background started. lock is the descriptor
// of the thread's lock; Background reads the first message from report. Errors are *protocol.Error; an error
// before an agent has started is also written to report.
func (e *Engine) Worker(ctx context.Context, thread string, lock uintptr, report io.Writer) error {
	voice := background.Ack{To: report}
	with := *e
	with.Events = func(ev Event) {
		if e.Events != nil {
			e.Events(ev)
		}
		if ev.Kind != AgentStarted {
			return
		}
		if out, err := e.Reader.Show(context.WithoutCancel(ctx), thread); err == nil {
			if out.Status == protocol.StatusIdle { // it is waiting to start the agent
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
	return e.resting().RunAndReport(ctx, thread, func() ([]protocol.StepOutput, error) {
		return e.driving(w).drive(ctx, thread, h, w)
	})
}
