package external

import "context"

// Host is what the runner does for a [Transport].
type Host struct {
	call  *call
	start func(Invocation) (*Process, error)
}

// Emit tells of an event. An error means that the call must end: the store or
// stdout is broken, or the event itself rules it out (a session that is not the
// one that was asked for); ctx of the call has ended then, too.
func (h *Host) Emit(ctx context.Context, e Event) error { return h.call.event(ctx, e) }

// Start starts the program of a call, with the environment, the logs and the
// watchdogs of the step. It runs until it ends or is stopped, also beyond the call.
func (h *Host) Start(inv Invocation) (*Process, error) { return h.start(inv) }
