package engine

import (
	"context"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// step makes one step of a thread, or adopts the finished result of an interrupted one. A
// suspended thread stays suspended; that is not an error.
func (e *Engine) step(ctx context.Context, h *lockedThread, o StepOptions) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	last, err := e.lastRun(ctx, h)
	if err != nil {
		return none, err
	}
	if last.Missing && !o.Fresh {
		if err := e.astray(ctx, h); err != nil {
			return none, err
		}
	}
	if h.ended != nil && (h.ended.Status != protocol.StatusCompleted || !last.ByPerson(h.head) && h.facts.ParkedUntil <= status.NotParked) {
		return none, hasEnded(h)
	}
	pos, err := e.at(ctx, h)
	if err != nil {
		return none, err
	}
	if last.ByPerson(h.head) && !o.Fresh {
		if out, adopted, err := e.adoptAsked(ctx, h, pos, last, o); adopted || err != nil {
			return out, err
		}
	}
	if pos.Parked > 0 && !o.Wake {
		return pos.Output(), nil
	}
	if t, ok, err := e.woken(ctx, h, last); ok || err != nil {
		if err != nil {
			return none, err
		}
		if t.replaces {
			if pos, err = e.BeforeHead(ctx, pos); err != nil {
				return none, err
			}
		}
		return e.attempt(ctx, h, pos, t, last, o)
	}
	if h.facts.ParkedUntil > status.NotParked && pos.Next.Kind == moderator.Suspend { // the parked task is lost
		if err := e.setParked(ctx, h, status.NotParked); err != nil {
			return none, err
		}
		pos.Facts.ParkedUntil = status.NotParked
	}
	switch {
	case h.ended != nil:
		return none, hasEnded(h)
	case pos.Problem != nil:
		return none, pos.Explain()
	case pos.Form != nil && !o.plays(pos.Next):
		out, _, err := e.answeredBefore(ctx, h, pos, last, o)
		return out, err
	case pos.Next.Kind == moderator.Suspend && !o.plays(pos.Next):
		return pos.Output(), nil
	case pos.Next.Kind == moderator.Fan:
		return e.fan(ctx, h, pos, last, o)
	case pos.Next.Kind == moderator.End: // killed between moving the head and archiving
		return e.archive(ctx, h, pos)
	}
	t, err := e.task(ctx, pos, pos.Next)
	if err != nil {
		return none, err
	}
	return e.attempt(ctx, h, pos, t, last, o)
}

// plays reports whether a scenario plays the person who is next.
func (o StepOptions) plays(d moderator.Decision) bool {
	return o.Scenario != "" && d.Cause == moderator.ByPerson
}

// lastRun is the record of the thread's last run; an error if its agent is
// still at work on this head.
func (e *Engine) lastRun(ctx context.Context, h *lockedThread) (rundir.Record, error) {
	dir := e.RunDir(h.id)
	r := dir.Read()
	if e.agentAlive(ctx, h, dir, r) {
		return r, e.Outlived(h.id, r)
	}
	return r, nil
}

// idle is the record of the last run of a thread on which no agent is at work, and where
// it stands.
func (e *Engine) idle(ctx context.Context, h *lockedThread) (last rundir.Record, pos *status.Position, err error) {
	if last, err = e.lastRun(ctx, h); err != nil {
		return last, nil, err
	}
	pos, err = e.at(ctx, h)
	return last, pos, err
}

// agentAlive reports whether the agent of the thread's last run is still working on this head,
// whatever it has done to its run directory.
func (e *Engine) agentAlive(ctx context.Context, h *lockedThread, dir rundir.Dir, r rundir.Record) bool {
	return h.orphan.Pid != 0 || ((r.Unfinished(h.head) || r.Missing) && dir.SurelyAlive(ctx, r))
}

// hasEnded returns the error for an operation that only an active thread allows.
func hasEnded(h *lockedThread) error {
	err := fault.New(protocol.CodeFailed, "thread %s is %s: it takes no more steps", h.id, h.ended.Status)
	if h.ended.Status == protocol.StatusCompleted {
		err = fault.Hinted(err, "uwf thread resume "+h.id+" -p '<what else to do>'")
	}
	return fault.Hinted(err, "uwf thread fork "+string(h.head))
}
