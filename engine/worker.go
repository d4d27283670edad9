package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Worker does what [Engine.Background] was asked to, in the process that it has
// started: lock is the descriptor of the thread's lock, tell is where our word is
// awaited. Errors are *protocol.Error; one that comes before an agent has begun
// is told, too.
func (e *Engine) Worker(ctx context.Context, thread string, lock uintptr, tell io.Writer) error {
	var once sync.Once
	say := func(a ack) {
		once.Do(func() { _ = json.NewEncoder(tell).Encode(a) }) // a parent that was killed does not listen
	}
	with := *e
	with.began = func() {
		if out, err := e.Show(context.WithoutCancel(ctx), thread); err == nil {
			say(ack{Output: &out})
		}
	}
	outs, err := with.work(ctx, thread, lock)
	switch {
	case err != nil:
		c := fault.Of(err)
		say(ack{Error: &ackError{Code: c.Code, Message: c.Message, Hints: c.Hints}})
		return c
	case len(outs) > 0:
		say(ack{Output: &outs[len(outs)-1]})
	}
	return nil
}

func (e *Engine) work(ctx context.Context, thread string, lock uintptr) ([]protocol.StepOutput, error) {
	if err := status.CheckID(thread); err != nil {
		return nil, err
	}
	if err := e.mayWrite(); err != nil {
		return nil, err
	}
	files, ok := e.Locker().(locker.Files)
	if !ok {
		return nil, errNotInherited()
	}
	held, err := files.Inherited(os.NewFile(lock, "lock"), thread)
	if err != nil {
		return nil, &protocol.Error{
			Code: protocol.CodeUsage, Message: fmt.Sprintf("this command is for uwf itself: %v", err), Err: err,
			Hints: []string{"uwf thread step " + thread + " --background"},
		}
	}
	h, err := e.take(ctx, thread, held)
	if err != nil {
		return nil, err
	}
	w, err := workIn(e.RunDir(thread))
	if err != nil {
		h.release()
		return nil, err
	}
	return e.untilRest(ctx, thread, func() ([]protocol.StepOutput, error) { return e.driving(w).drive(ctx, thread, h, w) })
}

// workIn reads what a worker is to do.
func workIn(d rundir.Dir) (Work, error) {
	var w Work
	data, err := d.ReadFile(runfiles.WorkFile, rundir.MaxWork)
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	if err != nil {
		return w, fmt.Errorf("read the worker's job: %w", err)
	}
	return w, nil
}
