package engine

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

// rest is how a thread stands before or after somebody has worked on it.
type rest struct {
	out     protocol.StepOutput
	started int64 // when its last try was begun, ms
}

func (e *Engine) restOf(ctx context.Context, id string) (rest, bool) {
	out, err := e.Show(ctx, id)
	if err != nil {
		return rest{}, false
	}
	r := rest{out: out}
	if record := e.RunDir(id).Read(); !record.Damaged {
		r.started = record.StartedAt
	}
	return r, true
}

// untilRest does work on a thread and tells [Engine.Rested] how the thread has come to
// rest by it. Nobody is told of what somebody has asked for (a stop), what was so before,
// and of a child that has ended: its parent goes on.
func (e *Engine) untilRest(ctx context.Context, id string, work func() ([]protocol.StepOutput, error)) ([]protocol.StepOutput, error) {
	if e.Rested == nil {
		return work()
	}
	leave := e.attend(ctx, id)
	defer leave()
	before, known := e.restOf(ctx, id)
	outs, err := work()
	ctx = context.WithoutCancel(ctx)
	after, there := e.restOf(ctx, id)
	if !known || !there || err != nil && isAsked(fault.Of(err).Code) {
		return outs, err
	}
	event := status.RestOf(after.out)
	moved := after.out.Head != before.out.Head || after.started != before.started || status.RestOf(before.out) != event ||
		len(after.out.Children) > 0 && err != nil || asks(after.out) != asks(before.out) || e.isNew(ctx, after.out)
	if event == protocol.NoticeEnded {
		facts, factsErr := e.Heads.Facts(ctx, id)
		moved = moved && factsErr == nil && facts.Parent == nil
	}
	if event != "" && moved {
		e.Rested(event, after.out)
	}
	return outs, err
}

// isAsked reports whether work ended because a person wanted it so, or was none.
func isAsked(c protocol.Code) bool {
	return slices.Contains([]protocol.Code{
		protocol.CodeTerminated, protocol.CodeInterrupted, protocol.CodeHangup, protocol.CodeLocked, protocol.CodeUsage, protocol.CodeNotFound,
	}, c)
}

func asks(out protocol.StepOutput) string {
	if out.Question == nil {
		return ""
	}
	return out.Question.Role + "\x00" + out.Question.Text
}

// isNew reports whether a thread asks before its first step: it has stood so since it was
// made, and nobody was told.
func (e *Engine) isNew(ctx context.Context, out protocol.StepOutput) bool {
	if out.Question == nil {
		return false
	}
	t, err := thread.Open(ctx, e.Nodes(), out.Head)
	return err == nil && t.Last == nil
}
