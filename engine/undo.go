package engine

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

// UndoOptions of [Engine.Undo] and [Engine.Redo]. The zero value works.
type UndoOptions struct {
	KeepFiles bool // the files stay as they are
}

// Undo takes a thread and its files one step back; an ended thread is active again. The
// step is kept for [Engine.Redo] until the thread goes on. Errors are *protocol.Error.
func (e *Engine) Undo(ctx context.Context, id string, o UndoOptions) (protocol.StepOutput, error) {
	return e.travel(ctx, id, func(h *lockedThread, pos *status.Position) (*protocol.FileChanges, error) {
		return e.back(ctx, h, pos, o.KeepFiles)
	})
}

// back takes a thread that is held, and its files, one step back. It returns what that
// changed in the files.
func (e *Engine) back(ctx context.Context, h *lockedThread, pos *status.Position, keepFiles bool) (changed *protocol.FileChanges, err error) {
	last := pos.Thread.Last
	if last == nil {
		return nil, fault.New(protocol.CodeFailed, "thread %s has no step to undo", h.id)
	}
	if _, err := e.eachKid(ctx, h, false, e.Stop); err != nil {
		return nil, err
	}
	if pos.Workflow.Roles[last.Role].HasChildren() { // their answers are not reused
		e.warn(fmt.Sprintf("role %q plays all its children anew; uwf thread fork %s takes over what they have answered", last.Role, pos.Previous()))
		if err := e.ask(ctx, h, children.Place{Head: pos.Previous(), Role: last.Role}.AttemptKey("")); err != nil {
			return nil, err
		}
	}
	undone := []protocol.Hash{h.head}
	if next, err := e.Undone(ctx, h.facts, h.head); err != nil {
		return nil, err
	} else if next != nil {
		undone = append(undone, h.facts.Undone...)
	}
	if !keepFiles {
		if changed, err = e.Files().Travel(ctx, h.files(), pos.Dir(), pos.Thread, false); err != nil {
			return nil, err
		}
	}
	if err := e.Heads.SetFacts(ctx, h.id, heads.Facts{Undone: undone}); err != nil {
		return changed, err
	}
	h.facts.Undone = undone
	if err := e.reopen(ctx, h); err != nil {
		return changed, err
	}
	return changed, e.shift(ctx, h, pos.Previous())
}

// reopen makes an ended thread active again.
func (e *Engine) reopen(ctx context.Context, h *lockedThread) error {
	if h.ended == nil {
		return nil
	}
	if err := e.Heads.Reopen(ctx, *h.ended, e.nowMs()); err != nil {
		return err
	}
	h.ended = nil
	return nil
}

// backTo takes a thread that is held back to one of its nodes. It returns the record of
// the last run.
func (e *Engine) backTo(ctx context.Context, h *lockedThread, last rundir.Record, pos *status.Position, node protocol.Hash, keepFiles bool) (rundir.Record, error) {
	if h.head == node {
		return last, nil
	}
	if err := undisturbed(h, last); err != nil {
		return last, err
	}
	last = e.passed(h, last)
	for h.head != node {
		_, err := e.back(ctx, h, pos, keepFiles)
		if err == nil {
			pos, err = e.at(ctx, h)
		}
		if err != nil {
			return last, err
		}
	}
	return last, nil
}

// Redo takes a thread and its files forward to the step that was undone last. Errors are
// *protocol.Error.
func (e *Engine) Redo(ctx context.Context, id string, o UndoOptions) (protocol.StepOutput, error) {
	return e.travel(ctx, id, func(h *lockedThread, pos *status.Position) (changed *protocol.FileChanges, err error) {
		next, err := e.Undone(ctx, h.facts, h.head)
		if err != nil {
			return changed, err
		}
		if next == nil || h.ended != nil && h.ended.Status != protocol.StatusCompleted {
			return nil, fault.New(protocol.CodeFailed, "thread %s has no undone step to go forward to", h.id)
		}
		if !o.KeepFiles {
			if changed, err = e.Files().Travel(ctx, h.files(), pos.Dir(), next, true); err != nil {
				return changed, err
			}
		}
		if rest := h.facts.Undone[1:]; len(rest) > 0 {
			if err := e.Heads.SetFacts(ctx, h.id, heads.Facts{Undone: rest}); err != nil {
				return changed, err
			}
		}
		if err := e.reopen(ctx, h); err != nil {
			return changed, err
		}
		return changed, e.shift(ctx, h, next.Head)
	})
}

// travel moves the head of a thread that nothing works on.
func (e *Engine) travel(ctx context.Context, id string, move func(*lockedThread, *status.Position) (*protocol.FileChanges, error)) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	h, err := e.lock(ctx, id)
	if err != nil {
		return none, fault.Of(err)
	}
	defer h.release()
	if err := e.settle(ctx, h, Work{}); err != nil {
		return none, fault.Of(err)
	}
	last, err := e.lastRun(ctx, h)
	if err != nil {
		return none, fault.Of(err)
	}
	if err := undisturbed(h, last); err != nil {
		return none, err
	}
	pos, err := e.at(ctx, h)
	if err != nil {
		return none, fault.Of(err)
	}
	e.passed(h, last)
	changed, err := move(h, pos)
	if err != nil {
		return none, fault.Ended(ctx, err)
	}
	out, err := e.arrive(ctx, h)
	out.Files = changed
	if err != nil {
		return out, fault.Ended(ctx, err)
	}
	return out, nil
}

// undisturbed refuses to move a thread whose last run may have left a result.
func undisturbed(h *lockedThread, last rundir.Record) error {
	if !last.Unfinished(h.head) {
		return nil
	}
	return fault.Hinted(fault.New(protocol.CodeFailed, "a step of thread %s was interrupted, and may have left its result", h.id), "uwf thread step "+h.id+" takes it over, or makes it anew")
}

// passed marks the last run's record as done if the engine was killed after moving the head:
// its result must not be adopted again.
func (e *Engine) passed(h *lockedThread, last rundir.Record) rundir.Record {
	if last.Status.InFlight() {
		last.Status, last.StepHash = rundir.Done, h.head
		_ = e.RunDir(h.id).Write(last)
	}
	return last
}

// shift moves the head of a thread that is held.
func (e *Engine) shift(ctx context.Context, h *lockedThread, to protocol.Hash) error {
	if err := e.Heads.Move(ctx, h.id, h.head, to); err != nil {
		return err
	}
	h.head = to
	return nil
}
