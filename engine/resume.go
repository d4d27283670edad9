package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// resume makes the step that a person's answer leads to: a suspended thread goes on with the
// role that suspended, a completed one starts over at $START. If it fails, the thread stays
// suspended or completed.
func (e *Engine) resume(ctx context.Context, h *lockedThread, supplement string, o StepOptions) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	if h.ended != nil && h.ended.Status != protocol.StatusCompleted {
		return none, hasEnded(h)
	}
	last, pos, err := e.idle(ctx, h)
	if err != nil {
		return none, err
	}
	if lets, err := e.letKidsGoOn(ctx, h, pos, supplement); lets || err != nil {
		if err != nil {
			return none, err
		}
		return e.step(ctx, h, o)
	}
	t, err := e.resumeTask(ctx, h, pos, supplement)
	if err != nil {
		return none, err
	}
	return e.attempt(ctx, h, pos, t, last, o)
}

// letKidsGoOn notes that a role with children may go on after a limit has stopped it, or after
// it has suspended the thread. A person's words would reach none of the children.
func (e *Engine) letKidsGoOn(ctx context.Context, h *lockedThread, pos *status.Position, words string) (bool, error) {
	if h.ended != nil || pos.Problem != nil || !pos.Workflow.Roles[pos.Next.Role].HasChildren() || pos.Next.Kind != moderator.Suspend {
		return false, nil
	}
	if strings.TrimSpace(words) != "" {
		return false, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s: role %q is played by other threads, which no words reach", h.id, pos.Next.Role),
			"uwf thread resume "+h.id+" -p '' runs those again that have failed")
	}
	if err := pos.WithinBudget(pos.Next.Role); err != nil {
		return false, err
	}
	return true, e.ask(ctx, h, pos.Place().AttemptKey(""))
}

// resumeTask is what answers a thread that waits for a person. After a reached limit or a new
// beginning, counting starts here.
func (e *Engine) resumeTask(ctx context.Context, h *lockedThread, pos *status.Position, supplement string) (task, error) {
	if pos.Problem != nil {
		return task{}, pos.Explain()
	}
	if h.ended == nil && pos.Next.Kind == moderator.End { // killed before it was archived
		if _, err := e.archive(ctx, h, pos); err != nil {
			return task{}, err
		}
	}
	restart := h.ended != nil
	d, err := moderator.Resume(ctx, pos.State, restart, supplement)
	if errors.Is(err, moderator.ErrNotSuspended) {
		return task{}, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s is not suspended: next is %q", h.id, pos.Next.Role),
			"uwf thread step "+h.id)
	}
	if errors.Is(err, moderator.ErrChildren) {
		return task{}, fault.New(protocol.CodeFailed, "thread %s cannot begin anew: other threads play its first role %q. Start another thread", h.id, d.Role)
	}
	if errors.Is(err, moderator.ErrForm) && !restart {
		return task{}, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s waits for the data of role %q, which a person plays: words are not enough", h.id, d.Role),
			"uwf thread answer "+h.id)
	}
	if errors.Is(err, moderator.ErrForm) {
		return task{}, fault.New(protocol.CodeFailed, "thread %s cannot begin anew: a person plays its first role %q. Start another thread", h.id, d.Role)
	}
	if err != nil {
		return task{}, err
	}
	if err := pos.WithinBudget(d.Role); err != nil {
		return task{}, err
	}
	t, err := e.task(ctx, pos, d)
	if err == nil {
		t, err = e.onceMore(ctx, pos, t)
	}
	t.resumes = true
	if restart || d.Cause == moderator.ByLimit {
		t.limitBase = pos.Thread.Len()
	}
	return t, err
}
