package cliagent

import "context"

// Transport talks to a program in its own protocol. One serves all calls of a step, so it may
// keep the program running between them.
type Transport interface {
	// Call carries out a call and tells what happens by h.Emit, in order, from one
	// goroutine at a time. ctx ends when the call must: its cause says why. The
	// outcome is what the program said; how it was stopped is for the runner. An
	// error is of our own side: the store, the disk, a program that cannot start.
	Call(ctx context.Context, c Call, h *Host) (Outcome, error)
	// Close ends what still runs.
	Close() error
}
