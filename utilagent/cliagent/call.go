package cliagent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// quietTime is how long a turn that may be complete waits for more of its message.
const quietTime = 300 * time.Millisecond

// changedError is the cause when a call came back in a session other than the one that it was
// to continue.
type changedError struct{ want, got string }

func (e *changedError) Error() string {
	if e.want == e.got {
		return fmt.Sprintf("a copy of session %s was asked for, and it came back itself", e.want)
	}
	return fmt.Sprintf("session %s was asked for, %s came back", e.want, e.got)
}

// vainError is the cause when the program keeps repeating a request that cannot work, or has
// failed for too long: then the whole call is not repeated either.
type vainError struct {
	kind errorkind.Kind
	text string
}

func (e *vainError) Error() string { return e.text }

// errTurns is the cause when a call reached the limit of turns.
var errTurns = errors.New("the limit of turns is reached")

// call is a running call: it turns events into turns and checks them against what was asked
// for. Safe for concurrent use.
type call struct {
	ask      Call
	sessions Sessions
	isPlain  func(id string) bool
	count    bool // turns are counted here
	cancel   context.CancelCauseFunc
	watch    *watch
	began    func(session string) error // told once for each id that is good
	heard    func(agentkit.Letter) error
	program  string

	mu      sync.Mutex
	waits   waits
	record  record
	quiet   *time.Timer
	session string // the newest id that the program told
	known   string // to began
	model   string
	version Version
	over    bool
}

// event takes an event; see [Host.Emit].
func (c *call) event(ctx context.Context, e Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil // it came too late to matter
	}
	if err := c.learn(e); err != nil {
		return c.end(err)
	}
	ctx = context.WithoutCancel(ctx) // what a program says while it is stopped has happened too
	if err := c.record.take(ctx, e); err != nil {
		return c.end(err)
	}
	c.watch.event(e, c.record.running > 0)
	switch e.Kind {
	case Heard:
		if err := c.heard(e.letter); err != nil {
			return c.end(err)
		}
	case Retrying:
		c.waits.retrying(e.Status)
	case Text, Delta, Reasoning, Called, Returned, Done:
		c.waits.word()
	}
	c.listen(ctx)
	c.later(ctx)
	if c.record.messages > 0 && c.session != "" && c.session != c.known {
		c.known = c.session
		if err := c.began(c.session); err != nil {
			return c.end(err)
		}
	}
	switch {
	case e.Kind == Retrying && e.Error != "":
		return c.end(&vainError{kind: e.Error, text: e.Text})
	case c.count && c.ask.MaxTurns > 0 && c.atLimit(e.Kind):
		return c.end(errTurns)
	}
	return nil
}

// atLimit reports whether the call must end at this event because its turns are used up: when
// the tools of the last turn have returned, or when the model calls another tool after it,
// since some programs never report a tool's return.
func (c *call) atLimit(k Kind) bool {
	switch over := c.record.messages - c.ask.MaxTurns; k {
	case Returned:
		return over >= 0 && c.record.running == 0
	case Called:
		return over > 0
	}
	return false
}

// end ends the call for a cause.
func (c *call) end(cause error) error {
	c.cancel(cause)
	return cause
}

// learn notes what an event says about the session.
func (c *call) learn(e Event) error {
	if e.Model != "" {
		c.model = e.Model
	}
	if e.Version != "" {
		c.version = ParseVersion(e.Version)
	}
	if e.Session == "" || e.Session == c.session || !c.isPlain(e.Session) {
		return nil
	}
	if c.session == "" && c.ask.Resume {
		if err := c.verify(e.Session); err != nil {
			return err
		}
	}
	c.session = e.Session
	return nil
}

// verify checks the first id of a continued session against the one asked for.
func (c *call) verify(got string) error {
	same := got == c.ask.Session
	version := c.version
	if !version.Known() {
		version = c.ask.Version
	}
	switch {
	case c.ask.Fork != same:
		return nil // the same to go on in, or another for a copy
	case !c.ask.Fork && c.sessions.Renames != nil && c.sessions.Renames(version):
		return nil
	}
	return &changedError{want: c.ask.Session, got: got}
}

// later makes sure that a turn is stored even if nothing follows for a while.
func (c *call) later(ctx context.Context) {
	if c.quiet != nil {
		c.quiet.Reset(quietTime)
		return
	}
	c.quiet = time.AfterFunc(quietTime, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.over {
			return
		}
		if err := c.record.quiet(ctx); err != nil {
			c.cancel(err)
		}
	})
}

// close ends the call: what comes now is ignored. The turn that was pending is
// stored with a context that outlives the call, since it happened.
func (c *call) close(ctx context.Context) error {
	c.watch.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.waits.close()
	if c.quiet != nil {
		c.quiet.Stop()
	}
	return c.record.flush(context.WithoutCancel(ctx))
}
