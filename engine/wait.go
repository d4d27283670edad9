package engine

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
)

// How often a thread in flight is looked at: soon at first, then rarely.
const (
	minWait = 10 * time.Millisecond
	maxWait = 250 * time.Millisecond
)

// Wait returns when nothing works on the thread any more: the agent has ended,
// and so has the process that started it, with all the steps that it was to make.
// Errors are *protocol.Error, or what ended ctx.
func (e *Engine) Wait(ctx context.Context, thread string) (protocol.StepOutput, error) {
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		running, err := e.running(ctx, thread)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return protocol.StepOutput{}, fault.Of(err)
		}
		if !running {
			return e.Show(ctx, thread)
		}
		if err := pause(ctx, wait); err != nil {
			return protocol.StepOutput{}, fault.Of(err)
		}
	}
}

// Busy reports whether anything works on a thread: what [Engine.Wait] waits for.
// Errors are *protocol.Error.
func (e *Engine) Busy(ctx context.Context, thread string) (bool, error) {
	busy, err := e.running(ctx, thread)
	if err != nil {
		return false, fault.Of(err)
	}
	return busy, nil
}

// running reports whether an agent is at work, or a process that makes steps.
func (e *Engine) running(ctx context.Context, id string) (bool, error) {
	head, _, err := e.lookup(ctx, id)
	if err != nil {
		return false, err
	}
	dir := e.runDir(id)
	r := dir.Read()
	return e.locks().Held(ctx, id) || e.orphan(ctx, id).pid != 0 || (r.Unfinished(head) && dir.Alive(r)), nil
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
