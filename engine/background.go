package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// WorkerLog is the file in which a thread's background worker says what it does.
func (e *Engine) WorkerLog(thread string) string { return e.RunDir(thread).File(runfiles.LogFile) }

// ack is what a worker tells whoever started it, in one line on its stdout: that
// an agent has begun, that there was nothing to begin, or why it could not.
type ack struct {
	Output *protocol.StepOutput `json:"output,omitempty"`
	Error  *ackError            `json:"error,omitempty"`
}

type ackError struct {
	Code    protocol.Code `json:"code"`
	Message string        `json:"message"`
	Hints   []string      `json:"hints,omitempty"`
}

// Background is [Engine.Do] in a process that nobody waits for. It returns once
// the first agent has begun, with status running, or once it is clear that none
// does: then with what the worker would have returned.
//
// args start our own program as the worker of this thread; the descriptor of the
// lock, see [Engine.Worker], is added to them. The lock is never free in between:
// it is taken here, and the worker inherits it. Whichever of the two processes is
// killed, and whenever, the other one has the lock until its own end.
func (e *Engine) Background(ctx context.Context, thread string, w Work, args []string) (protocol.StepOutput, error) {
	out, err := e.background(ctx, thread, w, args)
	if err != nil {
		return out, fault.Ended(ctx, err)
	}
	return out, nil
}

func (e *Engine) background(ctx context.Context, id string, w Work, args []string) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	if _, ok := e.Locker().(locker.Files); !ok {
		return none, errNotInherited()
	}
	if e.Env.Exe == "" {
		return none, fault.New(protocol.CodeFailed, "the system does not tell where this program is: it cannot be started in the background")
	}
	h, err := e.lock(ctx, id)
	if err != nil {
		return none, err
	}
	// Our copy only: the file is the worker's from now on.
	defer func() { _ = h.lock.Unlock() }()
	dir := e.RunDir(id)
	job, err := json.Marshal(w)
	if err != nil {
		return none, fmt.Errorf("prepare a worker: %w", err)
	}
	if err := dir.PrepareWorker(append(job, '\n')); err != nil {
		return none, err
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return none, fmt.Errorf("start a worker: %w", err)
	}
	defer told.Close()
	worker, err := e.startWorker(h, dir, args, tell)
	tell.Close() // the worker has its own
	if err != nil {
		return none, err
	}
	return e.awaitAck(ctx, worker, dir, told)
}

// errNotInherited: only a lock that is a file can be handed on to a worker.
func errNotInherited() error {
	return fault.New(protocol.CodeFailed, "this engine cannot work in the background: its locks are no files")
}

// startWorker starts our own program, with the thread's lock.
func (e *Engine) startWorker(h *lockedThread, dir rundir.Dir, args []string, tell *os.File) (*proc.Child, error) {
	log, err := careful.OpenFile(dir.File(runfiles.LogFile), os.O_WRONLY|os.O_APPEND, 0, careful.NoFollow)
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	defer log.Close()
	held, ok := h.lock.(*durable.Held)
	if !ok {
		return nil, errNotInherited()
	}
	lock := held.File()
	child, err := proc.Start(proc.Command{
		Path: e.Env.Exe, Args: append(args, strconv.FormatUint(uint64(inheritedAs(lock)), 10)),
		Dir: e.Env.Dir, Env: e.given(), Stdout: tell, Stderr: log, Inherit: []*os.File{lock}, Session: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return child, nil
}

// awaitAck waits for the worker's word. Asked to end before it has come, we pass
// that on: nothing has begun that is worth keeping.
func (e *Engine) awaitAck(ctx context.Context, worker *proc.Child, dir rundir.Dir, told io.Reader) (protocol.StepOutput, error) {
	type word struct {
		ack
		err error
	}
	heard := make(chan word, 1)
	go func() {
		var w word
		w.err = json.NewDecoder(told).Decode(&w.ack)
		heard <- w
	}()
	var none protocol.StepOutput
	select {
	case <-ctx.Done():
		_, err := worker.Wait(ctx, e.grace()+settle)
		return none, err
	case w := <-heard:
		switch {
		case w.err == nil && w.Error != nil:
			return none, fault.Hinted(fault.New(w.Error.Code, "%s", w.Error.Message), w.Error.Hints...)
		case w.err == nil && w.Output != nil:
			running := w.Output.Status == protocol.StatusRunning || w.Output.Status == protocol.StatusWaiting
			if running {
				w.Output.Background = &running
			}
			return *w.Output, nil
		}
	}
	_, _ = worker.Wait(context.WithoutCancel(ctx), 0) // it has ended, or is about to
	message := "the background worker ended before its first step"
	if said := agentproc.Tail(dir.File(runfiles.LogFile)); said != "" {
		message += "; its log ends:\n" + said
	}
	return none, fault.New(protocol.CodeFailed, "%s", message)
}
