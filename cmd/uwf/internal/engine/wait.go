package engine

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// How often a thread in flight is looked at: soon at first, then rarely.
const (
	minWait = 10 * time.Millisecond
	maxWait = 250 * time.Millisecond
)

// Wait returns when no step of the thread is running: the agent has ended, and
// so has the process that started it or its work on the step. Errors are
// *protocol.Error, or what ended ctx.
func (e *Engine) Wait(ctx context.Context, thread string) (protocol.StepOutput, error) {
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		running, err := e.running(ctx, thread)
		if err != nil {
			return protocol.StepOutput{}, coded(err)
		}
		if !running {
			return e.Show(ctx, thread)
		}
		if err := pause(ctx, wait); err != nil {
			return protocol.StepOutput{}, coded(err)
		}
	}
}

// running reports whether a step is in flight.
func (e *Engine) running(ctx context.Context, id string) (bool, error) {
	head, _, err := e.lookup(ctx, id)
	if err != nil {
		return false, err
	}
	dir := e.runDir(id)
	return dir.read().unfinished(head) && dir.alive(), nil
}

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
