package cliagent

import (
	"context"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/utilagent/errorkind"
)

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
