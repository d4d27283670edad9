package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// Tell leaves a message for the agent of a thread: the one at work, if it can hear while it
// works, else the next one. It is delivered once, and kept until then. Errors are
// *protocol.Error.
func (e *Engine) Tell(ctx context.Context, thread, text string) error {
	if err := e.MayWrite(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(text) == "" || !utf8.ValidString(text):
		return fault.New(protocol.CodeUsage, "there is nothing to tell")
	case len(text) > runfiles.MaxLetter:
		return fault.New(protocol.CodeUsage, "the message has %d bytes: %d are the most", len(text), runfiles.MaxLetter)
	}
	if err := e.tellable(ctx, thread); err != nil {
		return err
	}
	dir := e.RunDir(thread)
	if err := dir.Make(); err != nil {
		return fault.Of(err)
	}
	key, err := threadid.New(e.Env.Now(), e.Env.Rand)
	if err != nil {
		return fault.Of(err)
	}
	name, err := runfiles.Dir(dir.Path).Post(e.FS, runfiles.Letter{Text: text, AtMs: e.nowMs()}, key)
	if errors.Is(err, runfiles.ErrFull) {
		return fault.Hinted(fault.New(protocol.CodeFailed, "thread %s has many messages that no agent has read yet", thread), "uwf thread show "+thread)
	}
	if err != nil {
		return fault.Of(fmt.Errorf("tell thread %s: %w", thread, err))
	}
	// The thread may have ended meanwhile: then nobody will read it.
	if err := e.tellable(ctx, thread); err != nil && runfiles.Dir(dir.Path).Withdraw(name) {
		return err
	}
	return nil
}

// tellable refuses a thread that no agent will work on.
func (e *Engine) tellable(ctx context.Context, thread string) error {
	head, ended, err := e.Lookup(ctx, thread)
	if err != nil {
		return fault.Of(err)
	}
	if ended != nil {
		return hasEnded(&lockedThread{id: thread, head: head, ended: ended})
	}
	return nil
}

// unheard warns that a thread ended before a message was heard.
func (a *attempt) unheard() {
	if n := len(runfiles.Dir(a.dir.Path).Unread()); n > 0 {
		a.warn(fmt.Sprintf("thread %s has ended, and %d messages to it were not read: uwf thread resume %s -p '…' says it", a.locked.id, n, a.locked.id))
	}
}
