// Package rest tells somebody, be it away, how threads have come to rest on which somebody
// has worked: this process, or one that was killed.
package rest

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

// Teller tells of threads. Build it as a literal.
type Teller struct {
	*status.Reader
	// Told is given what of protocol.NoticeWaiting and its like has come of a thread, and
	// where it stands; nil: nobody is told.
	Told func(event string, at protocol.StepOutput)
}

// standing is how a thread stands before or after somebody has worked on it.
type standing struct {
	out     protocol.StepOutput
	started int64 // when its last try was begun, ms
}

func (t Teller) standingOf(ctx context.Context, id string) (standing, bool) {
	out, err := t.Show(ctx, id)
	if err != nil {
		return standing{}, false
	}
	r := standing{out: out}
	if record := t.RunDir(id).Read(); !record.Damaged {
		r.started = record.StartedAt
	}
	return r, true
}

// Until does work on a thread and tells how the thread has come to rest by it. Nobody is told of what somebody has asked for (a stop), what was so before,
// and of a child that has ended: its parent goes on.
func (t Teller) Until(ctx context.Context, id string, work func() ([]protocol.StepOutput, error)) ([]protocol.StepOutput, error) {
	if t.Told == nil {
		return work()
	}
	leave := t.attend(ctx, id)
	defer leave()
	before, known := t.standingOf(ctx, id)
	outs, err := work()
	ctx = context.WithoutCancel(ctx)
	after, there := t.standingOf(ctx, id)
	if !known || !there || err != nil && isAsked(fault.Of(err).Code) {
		return outs, err
	}
	event := Of(after.out)
	moved := after.out.Head != before.out.Head || after.started != before.started || Of(before.out) != event ||
		len(after.out.Children) > 0 && err != nil || asks(after.out) != asks(before.out) || t.isNew(ctx, after.out)
	if event == protocol.NoticeEnded {
		facts, factsErr := t.Heads.Facts(ctx, id)
		moved = moved && factsErr == nil && facts.Parent == nil
	}
	if event != "" && moved {
		t.Told(event, after.out)
	}
	return outs, err
}

// isAsked reports whether work ended because a person wanted it so, or was none.
func isAsked(c protocol.Code) bool {
	return slices.Contains([]protocol.Code{
		protocol.CodeTerminated, protocol.CodeInterrupted, protocol.CodeHangup, protocol.CodeLocked, protocol.CodeUsage, protocol.CodeNotFound,
	}, c)
}

// Of is what a thread that stands so is told of as; "": nothing.
func Of(out protocol.StepOutput) string {
	switch {
	case out.Status == protocol.StatusSuspended && out.Question != nil:
		return protocol.NoticeWaiting
	case out.Status == protocol.StatusSuspended && out.Error != nil && out.Error.Code == protocol.CodeBudget:
		return protocol.NoticeBudget
	case out.Status == protocol.StatusFailed, out.Status == protocol.StatusCorrupt:
		return protocol.NoticeFailed
	case out.Status == protocol.StatusCompleted:
		return protocol.NoticeEnded
	case out.Status == protocol.StatusSuspended:
		return protocol.NoticeWaiting
	}
	return ""
}

func asks(out protocol.StepOutput) string {
	if out.Question == nil {
		return ""
	}
	return out.Question.Role + "\x00" + out.Question.Text
}

// isNew reports whether a thread asks before its first step: it has stood so since it was
// made, and nobody was told.
func (t Teller) isNew(ctx context.Context, out protocol.StepOutput) bool {
	if out.Question == nil {
		return false
	}
	chain, err := thread.Open(ctx, t.Nodes(), out.Head)
	return err == nil && chain.Last == nil
}
