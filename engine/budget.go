package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
)

// More is an amount granted to a run beyond its limits. With Again set, it is the size of the limits that are
// used up.
type More = budget.More

// Grant sets the limits of a thread that are not zero in l, and adds m on top of them. It returns the
// resulting limits, one line each. Cost beyond the old limit is not deducted from the grant. Errors are
// *protocol.Error.
func (e *Engine) Grant(ctx context.Context, thread string, l protocol.Limits, m More) (_ []string, err error) {
	defer fault.Coded(&err)
	if l.Negative() || (protocol.Limits{}).WithAmount(m.Amount).Negative() || m == (More{}) && l == (protocol.Limits{}) {
		return nil, fault.New(protocol.CodeUsage, "no limit to raise")
	}
	h, err := e.lock(ctx, thread)
	if err != nil {
		return nil, err
	}
	defer h.release()
	if h.ended != nil && !h.ended.Status.AtEnd() {
		return nil, hasEnded(h)
	}
	if h.facts, err = e.Reader.Heads.Facts(ctx, h.id); err != nil {
		return nil, err
	}
	own := h.ownLimits()
	budget.Set(&own, l)
	h.facts.Limits = &own
	pos, err := e.Reader.Knowing(h.id, &h.facts).Position(ctx, h.id, h.head)
	if err == nil {
		err = pos.Problem
	}
	if err != nil {
		return nil, err
	}
	var lines []string
	if m.Again { // the daily limit for all threads; this thread's own only if it is used up as well
		raised, err := e.raiseDay(ctx)
		if err != nil {
			return nil, err
		}
		if _, over := moderator.OverBudget(pos.State, ""); raised != "" {
			lines, m.Again = []string{raised}, over || pos.UsedUp != "" || pos.Next.Cause == moderator.ByLimit
		}
	}
	if m.Again && pos.Next.Cause == moderator.ByLimit { // a step limit; resuming grants as many again
		m.Again, lines = false, append(lines, "granted the same number of steps again")
	}
	if m != (More{}) {
		var granted []string
		if granted, err = budget.Grant(&own, pos.ID, pos.State, pos.UsedUp, m); err != nil {
			return nil, err
		}
		lines = append(lines, granted...)
	}
	if err := e.Reader.Heads.SetFacts(ctx, h.id, heads.Facts{Limits: &own}); err != nil {
		return nil, err
	}
	return lines, nil
}

// raiseDay raises the daily limit if it is used up, and wakes all threads that wait for it.
func (e *Engine) raiseDay(ctx context.Context) (granted string, err error) {
	day, err := e.today(ctx)
	if err != nil || !day.Limited() {
		return "", err
	}
	granted, was, err := day.Raise()
	if err != nil || granted == "" {
		return "", err
	}
	all, err := e.Reader.Heads.AllFacts(ctx)
	for id, facts := range all {
		if facts.ParkedUntil == was.UntilMs {
			err = errors.Join(err, e.Reader.Heads.SetFacts(ctx, id, heads.Facts{ParkedUntil: e.nowMs()}))
		}
	}
	return granted, err
}

// ownLimits returns the limits that users have set for this thread.
func (h *lockedThread) ownLimits() heads.Limits {
	if h.facts.Limits == nil {
		return heads.Limits{}
	}
	return *h.facts.Limits
}

// keepReplaced records the cost of the head that this attempt's step will replace. The cost is counted once,
// no matter how often the step is tried.
func (a *attempt) keepReplaced(ctx context.Context) error {
	own := a.locked.ownLimits()
	r := own.Replaced
	if r.Last == a.locked.head {
		return nil
	}
	old, err := cas.Read[protocol.Step](ctx, a.reader.Nodes(), a.locked.head)
	if err != nil {
		return err
	}
	sum := budget.Replaced(r)
	sum.Add(old)
	own.Replaced = heads.Replaced{Last: a.locked.head, Totals: &sum.Totals, Unknown: sum.Unknown}
	if err := a.reader.Heads.SetFacts(ctx, a.locked.id, heads.Facts{Limits: &own}); err != nil {
		return err
	}
	a.locked.facts.Limits = &own
	return nil
}

// unknownCost warns that the cost of a step is unknown and cannot be counted against a limit.
func (a *attempt) unknownCost(s protocol.Step) {
	l := a.pos.State.Limits
	if l.MaxCostUSD == 0 || s.Usage.IsPriced() {
		return
	}
	warning := "the cost of a step is unknown" // a constant text, so that each run prints the warning only once
	if l.MaxTokens > 0 && s.Usage.Counted() {
		warning += "; maxTokens limits the run instead"
	}
	a.e.warn(warning)
}

// CheckBudget returns an error if the limits of a run of w could not be enforced. l holds the limits of this
// run alone. Errors are *protocol.Error.
func (e *Engine) CheckBudget(ctx context.Context, w protocol.Workflow, l protocol.Limits, o StepOptions) error {
	e = e.reading(e.Reader.ConfigOnce())
	inForce, err := e.Reader.Limits(ctx, w, l)
	if err != nil || inForce.MaxCostUSD == 0 {
		return err
	}
	for _, role := range flow.Roles(w) {
		if w.Roles[role].Player() != protocol.PlayedByAgent {
			continue
		}
		cmd, err := e.Casting().Agent(ctx, o.Choices(), w.Name, role)
		if err != nil {
			continue // running the role reports the error
		}
		why, err := e.Casting().Unpriced(ctx, inForce, cmd, w.Name, role)
		if err != nil {
			return fault.Of(err)
		}
		if why != "" {
			e.warn(fmt.Sprintf("the cost of steps will be unknown (%s), so maxTokens limits the run instead of "+
				"maxCostUsd", why))
		}
	}
	return nil
}
