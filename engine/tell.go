package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/rundir"
	"github.com/united-workforce/uwf/util/threadid"
)

// Tell leaves a message for the agent of a thread: the one at work, if it can hear while
// it works, else the next one. It is told once, and kept until then. Errors are
// *protocol.Error.
func (e *Engine) Tell(ctx context.Context, thread, text string) error {
	if err := e.mayWrite(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(text) == "" || !utf8.ValidString(text):
		return fail(protocol.CodeUsage, "there is nothing to tell")
	case len(text) > rundir.MaxLetter:
		return fail(protocol.CodeUsage, "the message has %d bytes: %d are the most", len(text), rundir.MaxLetter)
	}
	if err := e.tellable(ctx, thread); err != nil {
		return err
	}
	dir := e.runDir(thread)
	if err := dir.make(); err != nil {
		return coded(err)
	}
	key, err := threadid.New(e.Env.Now(), e.Env.Rand)
	if err != nil {
		return coded(err)
	}
	name, err := rundir.Dir(dir.path).Post(e.FS, rundir.Letter{Text: text, AtMs: e.nowMs()}, key)
	if errors.Is(err, rundir.ErrFull) {
		return hinted(fail(protocol.CodeFailed, "thread %s has many messages that no agent has read yet", thread), "uwf thread show "+thread)
	}
	if err != nil {
		return coded(fmt.Errorf("tell thread %s: %w", thread, err))
	}
	// The thread may have ended meanwhile: then nobody will read it.
	if err := e.tellable(ctx, thread); err != nil && rundir.Dir(dir.path).Withdraw(name) {
		return err
	}
	return nil
}

// tellable refuses a thread that nobody will work on.
func (e *Engine) tellable(ctx context.Context, thread string) error {
	head, ended, err := e.lookup(ctx, thread)
	if err != nil {
		return coded(err)
	}
	if ended != nil {
		return hasEnded(&lockedThread{id: thread, head: head, ended: ended})
	}
	return nil
}

// unheard says that a thread has ended before somebody was heard.
func (a *attempt) unheard() {
	if n := len(rundir.Dir(a.dir.path).Unread()); n > 0 {
		a.warn(fmt.Sprintf("thread %s has ended, and %d messages to it were not read: uwf thread resume %s -p '…' says it", a.locked.id, n, a.locked.id))
	}
}
