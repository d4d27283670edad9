package slot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Health reports whether this machine can make steps. If a step fails because of the machine, it goes back to
// the queue, and the worker pauses. Otherwise a machine without an agent's program, on which steps fail at
// once, would take all steps.
type Health struct {
	now   func() time.Time
	most  int // consecutive failed threads until the machine is given up
	first time.Duration

	mu     sync.Mutex
	failed []string // threads that could not be stepped since the last success
	until  time.Time
	reason string
	broken chan error // receives one error when the machine is given up
}

const (
	mostFailed   = 5
	firstPause   = 2 * time.Second
	longestPause = time.Minute
)

func newHealth(now func() time.Time) *Health {
	return &Health{now: now, most: mostFailed, first: firstPause, broken: make(chan error, 1)}
}

// Broken returns a channel that receives an error when the machine is given up because several consecutive
// threads could not be stepped. Each thread counts once, because its agent may be missing on all machines.
func (h *Health) Broken() <-chan error { return h.broken }

// Paused returns until when the worker is paused, and why. The time is zero if it isn't.
func (h *Health) Paused() (until time.Time, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.now().Before(h.until) {
		return time.Time{}, ""
	}
	return h.until, h.reason
}

// Wait waits until the worker is not paused.
func (h *Health) Wait(ctx context.Context) error {
	for {
		until, _ := h.Paused()
		if until.IsZero() {
			return ctx.Err()
		}
		select {
		case <-time.After(until.Sub(h.now())):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// well records that the machine was able to make a step, even if the step failed for another reason.
func (h *Health) well() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.until = nil, time.Time{}
}

// unwell records that the machine could not step a thread, and returns the duration of the pause.
func (h *Health) unwell(thread, reason string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.failed, thread) {
		h.failed = append(h.failed, thread)
	}
	pause := min(h.first<<(len(h.failed)-1), longestPause)
	h.until, h.reason = h.now().Add(pause), reason
	if len(h.failed) == h.most {
		select {
		case h.broken <- &protocol.Error{
			Code:    protocol.CodeFailed,
			Message: fmt.Sprintf("this machine failed to step %d threads in a row; last reason: %s", h.most, reason),
			Hints:   []string{"uwf doctor"},
		}:
		default:
		}
	}
	return pause
}
