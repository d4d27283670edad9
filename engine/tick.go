package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/queue"
	"github.com/united-workforce/uwf/protocol"
)

// Ticked is what became of a thread in one [Engine.Tick].
type Ticked struct {
	Thread string              `json:"thread"`
	Output protocol.StepOutput `json:"output"`
	Error  *protocol.StepError `json:"error,omitempty"`
}

// Tick makes one step of every thread that can go on, up to parallel at once, and tells of
// each as it ends, on one goroutine at a time. A thread that another process has taken
// meanwhile is left to it. After a step that failed by fault of the machine no other one begins: it
// would fail, too, and its thread would wait for a person. The error is about listing the threads; a thread's own failure is
// passed to told.
func (e *Engine) Tick(ctx context.Context, parallel int, o StepOptions, told func(Ticked)) error {
	due, err := e.Due(ctx)
	if len(due) == 0 {
		return err
	}
	// What a killed engine's agent has left may say that an account is limited: before others ask.
	var left, rest []string
	for _, id := range due {
		if e.RunDir(id).Read().Status.InFlight() {
			left = append(left, id)
		} else {
			rest = append(rest, id)
		}
	}
	due = append(left, rest...)
	var mu sync.Mutex
	broken := false
	waiting := queue.Work(ctx, parallel, due, func(id string) bool {
		t, ok, err := e.tickOne(ctx, id, o)
		mu.Lock()
		defer mu.Unlock()
		broken = broken || protocol.OfMachine(err)
		if ok {
			told(t)
		}
		return !broken
	})
	if broken && waiting > 0 {
		e.Warn(fmt.Sprintf("something is missing on this machine, so this run leaves %d more threads alone", waiting))
	}
	return errors.Join(err, context.Cause(ctx))
}

func (e *Engine) tickOne(ctx context.Context, id string, o StepOptions) (t Ticked, ok bool, err error) {
	o.due = true
	outs, err := e.Do(ctx, id, Work{Steps: 1, StepOptions: o})
	if len(outs) == 0 && err == nil {
		return t, false, nil // it is not due any more
	}
	var out protocol.StepOutput
	if len(outs) > 0 {
		out = outs[0]
	} else { // a second failure adds nothing to the first
		out, _ = e.Show(context.WithoutCancel(ctx), id)
	}
	t = Ticked{Thread: id, Output: out}
	if err != nil {
		c := fault.Of(err)
		_, ended, _ := e.Lookup(ctx, id)
		others := out.StepHash == nil && ended != nil
		if others || c.Code == protocol.CodeLocked || errors.Is(err, heads.ErrNoThread) {
			return t, false, err
		}
		t.Error = fault.Step(c)
	}
	return t, true, err
}
