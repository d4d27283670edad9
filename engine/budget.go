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

// More is what a person grants a run beyond its limits: an amount, or Again, as much as the limits are
// of what is used up.
type More = budget.More

// Grant sets those limits of a thread that are not zero, and grants more on top of
// them. It returns what holds now, one line each. What a run has already cost beyond a limit
// is not deducted from the grant. Errors are *protocol.Error.
func (e *Engine) Grant(ctx context.Context, thread string, l protocol.Limits, m More) (_ []string, err error) {
	defer fault.Coded(&err)
	if l.Negative() || (protocol.Limits{}).WithAmount(m.Amount).Negative() || m == (More{}) && l == (protocol.Limits{}) {
		return nil, fault.New(protocol.CodeUsage, "there is nothing to grant")
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
	if m.Again { // for all threads, and for this one only if a limit of its own is reached, too
		said, err := e.raiseDay(ctx)
		if err != nil {
			return nil, err
		}
		if _, over := moderator.OverBudget(pos.State, ""); said != "" {
			lines, m.Again = []string{said}, over || pos.UsedUp != "" || pos.Next.Cause == moderator.ByLimit
		}
	}
	if m.Again && pos.Next.Cause == moderator.ByLimit { // of steps: resuming grants as many
		m.Again, lines = false, append(lines, "granted as many steps again")
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

// raiseDay raises the limit of the day if that is used up, and ends the wait of all threads for it.
func (e *Engine) raiseDay(ctx context.Context) (said string, err error) {
	day, err := e.today(ctx)
	if err != nil || !day.Limited() {
		return "", err
	}
	said, was, err := day.Raise()
	if err != nil || said == "" {
		return "", err
	}
	all, err := e.Reader.Heads.AllFacts(ctx)
	for id, facts := range all {
		if facts.ParkedUntil == was.UntilMs {
			err = errors.Join(err, e.Reader.Heads.SetFacts(ctx, id, heads.Facts{ParkedUntil: e.nowMs()}))
		}
	}
	return said, err
}

// ownLimits are the limits that people have set for this thread.
func (h *lockedThread) ownLimits() heads.Limits {
	if h.facts.Limits == nil {
		return heads.Limits{}
	}
	return *h.facts.Limits
}

// keepReplaced keeps the cost of the head that this attempt's step is about to replace. It is
// counted once, however often the step is tried.
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

// unknownCost warns, once a step is made, that its cost is unknown and no limit can count it.
func (a *attempt) unknownCost(s protocol.Step) {
	l := a.pos.State.Limits
	if l.MaxCostUSD == 0 || s.Usage.IsPriced() {
		return
	}
	said := "what a step has cost is unknown" // the same text for all, so that one warning a run is printed
	if l.MaxTokens > 0 && s.Usage.Counted() {
		said += ": its tokens count, and maxTokens bounds the run"
	}
	a.e.warn(said)
}

// CheckBudget returns why a run of a workflow could not be held to its limits, or nil. l holds
// the limits of this run alone. Errors are *protocol.Error.
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
		cmd, err := e.Casting().Agent(ctx, o.Wish(), w.Name, role)
		if err != nil {
			continue // whoever runs the role will say so
		}
		why, err := e.Casting().Unpriced(ctx, inForce, cmd, w.Name, role)
		if err != nil {
			return fault.Of(err)
		}
		if why != "" {
			e.warn(fmt.Sprintf("what a step costs will be unknown (%s): maxTokens bounds the run instead of maxCostUsd", why))
		}
	}
	return nil
}
