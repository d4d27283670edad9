package cliagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// withDefaults sets defaults for zero fields.
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
	key  string // config key of the timeout
	time time.Duration
	of   time.Duration // the configured timeout, if longer
}

func (e *expired) Error() string {
	text := fmt.Sprintf("it %s for %s, which is its %s", e.what, e.time, e.key)
	if e.of > e.time {
		text += fmt.Sprintf(" of %s, less what its end may take", e.of)
	}
	return text
}

// errGrace is the cause when a call had finished but the program did not exit.
var errGrace = errors.New("it did not exit after its last output")

// watch ends a call that makes no progress. Safe for concurrent use.
type watch struct {
	limits Timeouts
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer
	started bool // an event has arrived
	running bool // a tool is running
	done    bool // the terminal event has arrived
	closed  bool
	repeats bool // only retries were reported since the timer was set
	status  int  // status of the latest retry
}

func newWatch(limits Timeouts, cancel context.CancelCauseFunc) *watch {
	w := &watch{limits: limits, cancel: cancel}
	w.timer = time.AfterFunc(limits.Start, w.fire)
	return w
}

// line records that something was printed.
func (w *watch) line() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started && !w.done && !w.repeats {
		w.set()
	}
}

// silence removes the bounds on silence.
func (w *watch) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits.Start, w.limits.Idle, w.limits.Tool = w.limits.Total, w.limits.Total, w.limits.Total
	w.limits.Retrying = w.limits.Total
	w.set()
}

// event records an event and whether tools are running. If the model continues after Done, that event is
// void. Retries are no sign of life: their timeout starts with the first one.
func (w *watch) event(e Event, running bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case Text, Delta, Reasoning, Called, MessageReceived:
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
		w.cancel(&vainError{kind: kind, text: fmt.Sprintf("it only retried for %s: %s", w.limit(), trouble(w.status))})
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

// waits shows in live views that a call is waiting for a retry. Its owner's mutex guards it.
type waits struct {
	show func(text string) // nil without a live view
	now  func() time.Time

	tries    int // retries so far
	started  time.Time
	newest   time.Time // time of the latest report
	notified bool      // the displayed text becomes outdated with the next output
}

// retrying reports a retry.
func (w *waits) retrying(status int) {
	if w.show == nil {
		return
	}
	now := w.now()
	if w.tries++; w.tries == 1 {
		w.started = now
	} else if now.Sub(w.newest) < time.Second {
		return // each report writes a file
	}
	w.newest = now
	text := fmt.Sprintf("%s, attempt %d", trouble(status), w.tries+1)
	if took := now.Sub(w.started).Round(time.Second); took > 0 {
		text += ", " + took.String()
	}
	w.notify(text)
}

// trouble describes why a request is retried.
func trouble(status int) string {
	switch kind := errorkind.OfStatus(status); {
	case kind == errorkind.RateLimit:
		return "rate limit"
	case status == 0:
		return "cannot reach the model"
	default:
		return fmt.Sprintf("the model's endpoint answered with status %d", status)
	}
}

// word records other output of the program.
func (w *waits) word() {
	w.tries = 0
	if w.notified {
		w.notify("it continues")
		w.notified = false
	}
}

func (w *waits) notify(text string) {
	w.notified = true
	w.show(text)
}

// mailTime is the interval at which new messages are delivered to a working program.
const mailTime = time.Second

// post delivers messages to a program that can receive them while it works. A message counts as delivered
// when the program confirms it, not when it was written: the next call repeats unconfirmed ones. Safe for
// concurrent use.
type post struct {
	receiver MessageReceiver
	host     *Host
	stdin    io.WriteCloser
	over     chan struct{}

	mu     sync.Mutex
	closed bool
	sent   map[string]agentkit.Message // by the ID passed to the program
	open   int                         // sent but not confirmed
}

// newPost starts delivering messages from the mailbox.
func newPost(d MessageReceiver, h *Host, stdin io.WriteCloser) *post {
	t := &post{receiver: d, host: h, stdin: stdin, over: make(chan struct{}), sent: map[string]agentkit.Message{}}
	go func() {
		tick := time.NewTicker(mailTime)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.deliver()
			case <-t.over:
				return
			}
		}
	}()
	return t
}

// deliver writes new messages. A write fails only if the program is about to exit.
func (t *post) deliver() {
	for _, l := range t.host.mail() {
		if line, err := t.address(l); err != nil || t.write(line) != nil {
			return
		}
	}
}

func (t *post) write(line []byte) error {
	_, err := t.stdin.Write(line)
	return err
}

// address returns the line that delivers a message, or nil if it was sent before.
func (t *post) address(l agentkit.Message) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.sent {
		if other == l {
			return nil, nil
		}
	}
	if t.closed {
		return nil, nil
	}
	id, err := newUUID(t.host.rand)
	if err != nil {
		return nil, err
	}
	t.sent[id] = l
	t.open++
	return t.receiver.EncodeMessage(id, l.Text)
}

// sees handles an event and reports whether to keep it. When the program is done and has confirmed all
// messages, its stdin is closed.
func (t *post) sees(e *Event) bool {
	if t == nil {
		return e.Kind != MessageReceived
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case MessageReceived:
		l, known := t.sent[e.ID]
		if known {
			t.open--
		}
		e.message = l
		return known
	case Done:
		if t.open == 0 {
			t.closed = true
			_ = t.stdin.Close() // signals the end to the program
		}
	}
	return true
}

func (t *post) close() { close(t.over) }
