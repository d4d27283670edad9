package cliagent

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Host is what the runner does for a [Transport], over all calls of a step.
type Host struct {
	launch func(Invocation) (launch, error)
	limits Timeouts
	held   *confinement    // nil: the program is not confined
	outer  context.Context // of the step: it ends when the agent is stopped
	mail   func() []agentkit.Letter
	rand   io.Reader

	mu   sync.Mutex
	call *call
}

// Emit reports an event. An error means that the call must end: the store or
// stdout is broken, or the event itself rules it out (a session that is not the
// one that was asked for); ctx of the call has ended then, too.
func (h *Host) Emit(ctx context.Context, e Event) error {
	c := h.current(nil)
	if c == nil {
		return nil
	}
	return c.event(ctx, e)
}

// Start starts the program of a call, with the environment, the logs and the
// watchdogs of the step. It runs until it ends or is stopped, also beyond the call.
func (h *Host) Start(inv Invocation) (*Process, error) {
	l, err := h.launch(inv)
	if err != nil {
		return nil, err
	}
	if c := h.current(nil); c != nil && inv.Silent {
		c.watch.silence()
	}
	l.touch = func() {
		if c := h.current(nil); c != nil {
			c.watch.line()
		}
	}
	return start(l)
}

// OffLimits is what a confined program must not touch.
func (h *Host) OffLimits() offlimits.List {
	if h.held == nil {
		return offlimits.List{}
	}
	return h.held.off
}

// Pace is how long [Process.Stop] may wait between its signals. When the engine
// stops the agent, it kills it after five seconds.
func (h *Host) Pace() time.Duration {
	if h.outer.Err() != nil {
		return min(h.limits.Stop, 1500*time.Millisecond)
	}
	return h.limits.Stop
}

// current returns the running call, and replaces it with next unless that is nil.
func (h *Host) current(next *call) *call {
	h.mu.Lock()
	defer h.mu.Unlock()
	if next != nil {
		h.call = next
	}
	return h.call
}
