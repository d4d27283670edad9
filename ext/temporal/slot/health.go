package slot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Health is whether this machine can make steps. A step that fails because of the machine goes back
// to the queue, and the worker takes none for a while: else a machine without an agent's program,
// which fails at once and so is always free, would take them all.
type Health struct {
	now   func() time.Time
	most  int // threads in a row
	first time.Duration

	mu     sync.Mutex
	failed []string // threads that could not be stepped, since one could
	until  time.Time
	reason string
	broken chan error // one error, when the machine is given up
}

const (
	mostFailed   = 5
	firstPause   = 2 * time.Second
	longestPause = time.Minute
)

func newHealth(now func() time.Time) *Health {
	return &Health{now: now, most: mostFailed, first: firstPause, broken: make(chan error, 1)}
}

// Broken yields why the machine is given up: several threads in a row could not be stepped. A single
// thread counts once, since its agent may be missing everywhere.
func (h *Health) Broken() <-chan error { return h.broken }

// Paused returns until when no step is taken, and why; zero: steps are taken.
func (h *Health) Paused() (until time.Time, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.now().Before(h.until) {
		return time.Time{}, ""
	}
	return h.until, h.reason
}

// Wait returns once steps are taken.
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

// well notes that a step was not kept from being made by the machine.
func (h *Health) well() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.until = nil, time.Time{}
}

// unwell notes that the machine cannot step a thread, and returns for how long it takes no step.
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
			Message: fmt.Sprintf("this machine could not step %d threads in a row; the last reason: %s", h.most, reason),
			Hints:   []string{"uwf doctor"},
		}:
		default:
		}
	}
	return pause
}
