package engine

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// resume makes the step that a person's answer leads to: a suspended thread
// goes on with the role that suspended, a completed one starts over at $START.
// Should that fail, the thread is as suspended or completed as before.
func (e *Engine) resume(ctx context.Context, h *hold, supplement string, o StepOptions) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	if h.ended != nil && h.ended.Status != protocol.StatusCompleted {
		return none, hasEnded(h)
	}
	last, err := e.lastRun(ctx, h)
	if err != nil {
		return none, err
	}
	pos, err := e.at(ctx, h)
	if err != nil {
		return none, err
	}
	t, err := e.resumeTask(ctx, h, pos, supplement)
	if err != nil {
		return none, err
	}
	return e.attempt(ctx, h, pos, t, last, o)
}

// resumeTask is what answers a thread that waits for a person. A limit that was
// reached, and a new beginning, count from here.
func (e *Engine) resumeTask(ctx context.Context, h *hold, pos *position, supplement string) (task, error) {
	if pos.problem != nil {
		return task{}, pos.explain()
	}
	if h.ended == nil && pos.next.Kind == moderator.End { // killed before it was archived
		if _, err := e.archive(ctx, h, pos); err != nil {
			return task{}, err
		}
	}
	restart := h.ended != nil
	d, err := moderator.Resume(ctx, pos.state, restart, supplement)
	if errors.Is(err, moderator.ErrNotSuspended) {
		return task{}, hinted(fail(protocol.CodeFailed, "thread %s is not suspended: next is %q", h.id, pos.next.Role),
			"uwf thread step "+h.id)
	}
	if errors.Is(err, moderator.ErrForm) && !restart {
		return task{}, hinted(fail(protocol.CodeFailed, "thread %s waits for the data of role %q, which a person plays: words are not enough", h.id, d.Role),
			"uwf thread answer "+h.id)
	}
	if errors.Is(err, moderator.ErrForm) {
		return task{}, fail(protocol.CodeFailed, "thread %s cannot begin anew: a person plays its first role %q. Start another thread", h.id, d.Role)
	}
	if err != nil {
		return task{}, err
	}
	if err := pos.withinBudget(d.Role); err != nil {
		return task{}, err
	}
	t, err := e.task(ctx, pos, d)
	if err == nil {
		t, err = e.onceMore(ctx, pos, t)
	}
	t.resumes = true
	if restart || d.Cause == moderator.ByLimit {
		t.limitBase = pos.thread.Len()
	}
	return t, err
}
