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

// firstSilence is how long a program may be silent before watchers are told; they are told
// again after each further such period.
const firstSilence = 30 * time.Second

// waits tells watchers what a call is waiting for, since its program may say nothing for many
// minutes: that it is repeating a request, or that nothing is heard from it. Its owner guards
// it.
type waits struct {
	show func(text string) // nil: nobody watches
	now  func() time.Time

	tries  int // of the request that is repeated
	began  time.Time
	newest time.Time // when it was told of
	told   bool      // something is shown that the next word makes untrue
	quiet  time.Duration
	notice *time.Timer // of the silence
}

// retrying reports a request that is repeated.
func (w *waits) retrying(status int) {
	if w.show == nil {
		return
	}
	now := w.now()
	if w.tries++; w.tries == 1 {
		w.began = now
	} else if now.Sub(w.newest) < time.Second {
		return // each costs a file
	}
	w.newest = now
	text := fmt.Sprintf("%s, try %d", trouble(status), w.tries+1)
	if took := now.Sub(w.began).Round(time.Second); took > 0 {
		text += ", " + took.String()
	}
	w.tell(text)
}

// trouble says why a request is repeated.
func trouble(status int) string {
	switch kind := errorkind.OfStatus(status); {
	case kind == errorkind.RateLimit:
		return "rate limit"
	case status == 0:
		return "the model cannot be reached"
	default:
		return fmt.Sprintf("the model's endpoint answers with status %d", status)
	}
}

// word notes that the program says something else.
func (w *waits) word() {
	w.tries, w.quiet = 0, 0
	if w.told {
		w.tell("it goes on")
		w.told = false
	}
}

func (w *waits) tell(text string) {
	w.told = true
	w.show(text)
}

// listen calls f when nothing has been heard for a while.
func (w *waits) listen(f func()) {
	if w.show == nil {
		return
	}
	if w.notice == nil {
		w.notice = time.AfterFunc(firstSilence, f)
	} else {
		w.notice.Reset(firstSilence)
	}
}

// silent reports that nothing is heard, unless a tool is running: that is already shown.
func (w *waits) silent(program string, tool bool) {
	w.quiet += max(firstSilence, w.quiet)
	w.notice.Reset(w.quiet)
	if !tool && w.tries == 0 {
		w.tell(fmt.Sprintf("nothing heard of %s for %s: it thinks, or its provider holds it up", program, w.quiet))
	}
}

func (w *waits) close() {
	if w.notice != nil {
		w.notice.Stop()
	}
}

// listen starts to report silence to watchers. The mutex must be held.
func (c *call) listen(ctx context.Context) {
	c.waits.listen(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.over && ctx.Err() == nil {
			c.waits.silent(c.program, c.record.running > 0)
		}
	})
}

// mailTime is how often a working program is told what people have said meanwhile.
const mailTime = time.Second

// post passes on what people say to a program that can hear it while it works. A letter counts
// as heard when the program says so, not when it was written: the next call repeats what it
// had not read when it ended. Safe for concurrent use.
type post struct {
	hearer MessageReceiver
	host   *Host
	stdin  io.WriteCloser
	over   chan struct{}

	mu     sync.Mutex
	closed bool
	sent   map[string]agentkit.Message // by the id that the program knows
	open   int                         // of them, not heard
}

// newPost begins to tell a program what is in the mailbox.
func newPost(d MessageReceiver, h *Host, stdin io.WriteCloser) *post {
	t := &post{hearer: d, host: h, stdin: stdin, over: make(chan struct{}), sent: map[string]agentkit.Message{}}
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

// deliver writes what was not written yet. A program that does not read it is ending.
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

// address is the line that tells a letter, nothing if it was told.
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
	return t.hearer.Tell(id, l.Text)
}

// sees takes an event of the program, and reports whether it means something. A program that
// has nothing more to say, and has heard everything, is told that nothing more will come.
func (t *post) sees(e *Event) bool {
	if t == nil {
		return e.Kind != Heard
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case Heard:
		l, known := t.sent[e.ID]
		if known {
			t.open--
		}
		e.letter = l
		return known
	case Done:
		if t.open == 0 {
			t.closed = true
			_ = t.stdin.Close() // it reads the end
		}
	}
	return true
}

func (t *post) close() { close(t.over) }
