package external

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// withDefaults fills in what an adapter leaves open.
func (t Timeouts) withDefaults() Timeouts {
	for _, field := range []struct {
		value *time.Duration
		usual time.Duration
	}{
		{&t.Start, time.Minute}, {&t.Idle, 10 * time.Minute}, {&t.Tool, 20 * time.Minute}, {&t.Total, time.Hour},
		{&t.Grace, 10 * time.Second}, {&t.Stop, 5 * time.Second}, {&t.Retry, 5 * time.Second},
	} {
		if *field.value <= 0 {
			*field.value = field.usual
		}
	}
	return t
}

// expired is the cause of a call's end that a watchdog brought about.
type expired struct {
	what string // "printed nothing", …
	key  string // of the config, "" if there is none
	time time.Duration
}

func (e *expired) Error() string {
	return fmt.Sprintf("it %s for %s", e.what, e.time)
}

// errGrace is the cause of a call's end that came although the program did not:
// it had nothing more to say.
var errGrace = errors.New("it did not end after its last word")

// watch ends a call that does nothing. Safe for concurrent use.
type watch struct {
	limits Timeouts
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer
	started bool // there was an event
	running bool // a tool runs
	done    bool // the terminal event was seen
	closed  bool
}

func newWatch(limits Timeouts, cancel context.CancelCauseFunc) *watch {
	w := &watch{limits: limits, cancel: cancel}
	w.timer = time.AfterFunc(limits.Start, w.fire)
	return w
}

// line notes that something was printed.
func (w *watch) line() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started && !w.done {
		w.set()
	}
}

// silence lifts the bounds on silence.
func (w *watch) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits.Start, w.limits.Idle, w.limits.Tool = w.limits.Total, w.limits.Total, w.limits.Total
	w.set()
}

// event notes an event, and whether tools run now. When the model goes on after
// the last word, that was not the last.
func (w *watch) event(k Kind, running bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch k {
	case Text, Delta, Reasoning, Called:
		w.done = false
	case Done:
		w.done = true
	default:
		if w.done {
			return
		}
	}
	w.started, w.running = true, running
	w.set()
}

func (w *watch) set() {
	if !w.closed {
		w.timer.Reset(w.limit())
	}
}

func (w *watch) limit() time.Duration {
	switch {
	case w.done:
		return w.limits.Grace
	case !w.started:
		return w.limits.Start
	case w.running:
		return w.limits.Tool
	}
	return w.limits.Idle
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.done:
		w.cancel(errGrace)
	case !w.started:
		w.cancel(&expired{what: "said nothing", key: "startTimeout", time: w.limit()})
	case w.running:
		w.cancel(&expired{what: "printed nothing while a tool ran", key: "idleTimeout", time: w.limit()})
	default:
		w.cancel(&expired{what: "printed nothing", key: "idleTimeout", time: w.limit()})
	}
}

func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.timer.Stop()
}
