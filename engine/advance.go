package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/verify"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
)

// advance makes an accepted step durable, moves the head to it, and finds out what comes next.
// If it fails before the head has moved, the record stays unfinished and the next step adopts
// the result.
func (a *attempt) advance(ctx context.Context, got verify.Accepted) (protocol.StepOutput, error) {
	ctx, cancel := a.finishing(ctx)
	defer cancel(nil)
	var none protocol.StepOutput
	if err := a.flush(ctx, got); err != nil {
		return none, fmt.Errorf("make step %s durable: %w", got.Hash, err)
	}
	if err := a.spend(ctx, got.Hash, got.Step.Usage); err != nil {
		return none, a.unmoved(err)
	}
	if a.task.replaces {
		if err := a.keepReplaced(ctx); err != nil {
			return none, a.unmoved(err)
		}
	}
	// Killed between this and the move, the thread is active at its old head, and the next
	// step adopts the result.
	if err := a.reopen(ctx, a.locked); err != nil {
		return none, a.unmoved(err)
	}
	unpublished, err := isUnpublished(a.Heads.Move(ctx, a.locked.id, a.locked.head, got.Hash))
	if err != nil {
		return none, a.unmoved(err)
	}
	a.locked.head = got.Hash
	_ = a.day.Settle(a.locked.id) // else the step stays in the list of those that are counted
	a.record.Status, a.record.StepHash = rundir.Done, got.Hash
	// If this fails, the record is about an older head, and nobody reads it again.
	_ = a.dir.Write(a.record)
	if len(got.Step.Tries) > 0 {
		_ = a.FS.Remove(a.dir.File(runfiles.TriesFile)) // the step already has what it holds
	}
	budget.File{Dir: a.dir}.Add(got.Hash, got.Step)
	if err := a.dir.DropIntent(); err != nil { // found again, it is settled
		a.warn(err.Error())
	}
	if a.locked.facts.ParkedUntil > status.NotParked {
		if err := a.setParked(ctx, a.locked, status.NotParked); err != nil {
			a.warn("the thread still counts as rate-limited: " + err.Error())
		}
	}
	a.unknownCost(got.Step)
	out, err := a.arrive(ctx, a.locked)
	if out.Done {
		a.unheard()
	}
	// Copies: the output is kept until the last step is made, and must not keep all
	// nodes of its step with it.
	role, hash := got.Step.Role, got.Hash
	out.Role, out.StepHash, out.Agent, out.Usage = &role, &hash, got.Step.Agent, got.Step.Usage
	out.Files = a.kept.Changed(ctx, got.Step)
	if unpublished != nil {
		return out, unpublished
	}
	if err == nil && !a.info.Adopted && a.dir.StopRequested(a.record) {
		err = fault.Hinted(fault.New(protocol.CodeTerminated, "thread %s was stopped after %q had finished", a.locked.id, got.Step.Role),
			a.further())
	}
	return out, err
}

// isUnpublished distinguishes a head that moved here, but not where others see it, from one
// that did not move.
func isUnpublished(moved error) (unpublished, err error) {
	if errors.As(moved, new(*heads.UnpublishedError)) {
		return moved, nil
	}
	return nil, moved
}

// patience is how long a step may still take after a signal or its timeout, once its agent has
// finished.
const patience = 2 * time.Second

// finishing is the context for the work that remains once an agent has finished. That takes
// milliseconds, so neither a signal nor the step's timeout stops it at once; but it has a
// bound, since another process may hold a lock.
func (a *attempt) finishing(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	finishing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		after(finishing, patience, func() { cancel(context.Cause(ctx)) })
	})
	if total := a.cmd.Timeout; total > 0 {
		left := max(total-a.Env.Now().Sub(a.info.Started), 0) + patience
		late := fault.New(protocol.CodeTimeout, "the step exceeded its time limit of %s", total)
		after(finishing, left, func() { cancel(late) })
	}
	return finishing, cancel
}

// after calls do once wait has passed, unless ctx has ended by then.
func after(ctx context.Context, wait time.Duration, do func()) {
	timer := time.AfterFunc(wait, do)
	context.AfterFunc(ctx, func() { timer.Stop() })
}

// unmoved says that a step exists although the head could not be moved to it.
func (a *attempt) unmoved(err error) error {
	if !errors.Is(err, durable.ErrLocked) {
		return err
	}
	return fault.Hinted(fault.Of(fmt.Errorf("%q has finished, but the head of thread %s could not be moved: %w", a.task.role, a.locked.id, err)),
		a.further()+" takes its step over")
}

// flush makes a step durable before anything durable names it. An agent that commits its nodes
// says so in its result, as all that use our packages and `uwf step put` do; flushing twice
// costs 1 to 2 ms for a small step and 17 ms for one with 50 turns. Agents that write nodes in
// any other way are not trusted to have flushed them.
func (a *attempt) flush(ctx context.Context, got verify.Accepted) error {
	if got.Durable {
		return nil
	}
	return a.Store.Commit(ctx, got.Nodes...)
}

// arrive says where a thread stands at its head, and archives it if it has ended. If no edge
// leads on from the head, that is not an error of the step that led there: the output says
// what is wrong.
func (e *Engine) arrive(ctx context.Context, h *lockedThread) (protocol.StepOutput, error) {
	pos, err := e.Position(ctx, h.id, h.head)
	if err != nil {
		return pos.Damaged(h.head, err), nil
	}
	if pos.Problem == nil && pos.Next.Kind == moderator.End {
		return e.archive(ctx, h, pos)
	}
	return pos.Output(), nil
}

// archive ends a thread that has reached $END.
func (e *Engine) archive(ctx context.Context, h *lockedThread, pos *status.Position) (protocol.StepOutput, error) {
	out := pos.Output()
	ended := heads.Ended{
		Thread: h.id, Workflow: pos.Thread.Start.Workflow, Head: h.head,
		Status: protocol.StatusCompleted, CompletedAt: e.nowMs(),
	}
	if err := e.Heads.Archive(ctx, ended); err != nil {
		return out, fmt.Errorf("archive thread %s: %w", h.id, err)
	}
	h.ended = &ended
	if bye := (Event{Name: EventThreadEnded, Thread: h.id, Workflow: pos.Workflow.Name}); h.inStep {
		h.farewell = &bye
	} else {
		e.tell(bye)
	}
	out.Done = true
	e.Files().Leave(ctx, workspace.Leaving{ID: h.id, Head: h.head, Workspace: h.facts.Workspace, Held: h.kept.Held()})
	return out, nil
}
