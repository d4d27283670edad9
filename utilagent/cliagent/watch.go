package cliagent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// withDefaults fills in what an adapter leaves open.
func (t Timeouts) withDefaults() Timeouts {
	for _, field := range []struct {
		value *time.Duration
		usual time.Duration
	}{
		{&t.Start, time.Minute}, {&t.Idle, 10 * time.Minute}, {&t.Tool, 20 * time.Minute}, {&t.Total, config.AdapterTimeout},
		{&t.Retrying, 5 * time.Minute}, {&t.Grace, 10 * time.Second}, {&t.Stop, 5 * time.Second},
	} {
		if *field.value <= 0 {
			*field.value = field.usual
		}
	}
	return t
}

// expired is the cause when a watchdog ended a call.
type expired struct {
	what string // "printed nothing", …
	key  string // of the agent in the config
	time time.Duration
	of   time.Duration // what is configured, if that is more
}

func (e *expired) Error() string {
	text := fmt.Sprintf("it %s for %s: that is its %s", e.what, e.time, e.key)
	if e.of > e.time {
		text += fmt.Sprintf(" of %s, less what its end may take", e.of)
	}
	return text
}

// errGrace is the cause when a call was ended although the program had not: it had nothing
// more to say.
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
	repeats bool // nothing but repeated requests was told of since the timer was set
	status  int  // of the newest of them
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
	if w.started && !w.done && !w.repeats {
		w.set()
	}
}

// silence lifts the bounds on silence.
func (w *watch) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits.Start, w.limits.Idle, w.limits.Tool = w.limits.Total, w.limits.Total, w.limits.Total
	w.limits.Retrying = w.limits.Total
	w.set()
}

// event notes an event, and whether tools are running. If the model goes on after its last
// word, that was not the last. Repeating a request is no sign of life: its time starts with
// the first repetition.
func (w *watch) event(e Event, running bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case Text, Delta, Reasoning, Called, Heard:
		w.done, w.repeats = false, false
	case Done:
		w.done, w.repeats = true, false
	case Returned:
		if w.done {
			return
		}
		w.repeats = false
	case Retrying:
		w.started, w.status = true, e.Status
		if w.done || w.repeats || running {
			return
		}
		w.repeats = true
	default:
		if w.done || w.repeats {
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
	case w.repeats:
		return min(w.limits.Retrying, w.limits.Idle)
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
	case w.repeats:
		kind := errorkind.Server
		if w.status != 0 {
			kind = errorkind.OfStatus(w.status)
		}
		w.cancel(&vainError{kind: kind, text: fmt.Sprintf("for %s it has done nothing but ask again: %s", w.limit(), trouble(w.status))})
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
