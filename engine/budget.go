package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
)

// What a whole run may cost, in dollars, tokens and time: the workflow says it, or the
// config, or a person for one thread; people grant more. What it has cost is the sum
// over its chain, with failed tries, replaced steps, and without what a fork has taken
// over. No sum ever begins anew.

// facts is what is known of a thread besides its chain.
func (e *Engine) facts(ctx context.Context, id string) (heads.Facts, error) {
	if e.factsOf != nil {
		if facts, known := e.factsOf(id); known {
			return facts, nil
		}
	}
	return e.Heads.Facts(ctx, id)
}

// knowing returns an engine that takes the facts of a thread from who holds it.
func (e *Engine) knowing(h *lockedThread) *Engine {
	with := *e
	with.factsOf = func(thread string) (heads.Facts, bool) { return h.facts, thread == h.id }
	return &with
}

// spent is what a thread has cost by itself, up to its head.
func (e *Engine) spent(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (moderator.Spent, error) {
	sum, err := e.sumUp(ctx, id, head)
	if err != nil {
		return moderator.Spent{}, err
	}
	all := budget.SpentOf(sum)
	if facts.Fork != nil {
		before, err := e.before(ctx, id, facts.Fork.Step)
		if err != nil {
			return moderator.Spent{}, err
		}
		all = budget.Less(all, budget.SpentOf(before))
	}
	if own := facts.Limits; own != nil {
		if r := own.Replaced; r.Totals != nil {
			all = budget.Plus(all, budget.SpentOf(budget.Sums{Totals: *r.Totals, Unpriced: r.Unpriced, Uncounted: r.Uncounted, Blind: r.Blind}))
		}
		all = budget.Less(all, moderator.Spent{Unpriced: own.More.Unpriced, Uncounted: own.More.Uncounted, Blind: own.More.Blind})
	}
	return all, nil
}

// budget is what the run may still cost, by its own limits and by those of the threads
// whose part it plays.
func (p *position) budget() protocol.Budget {
	var b protocol.Budget
	for _, held := range append([]bound{{limits: p.state.Limits, spent: p.state.Spent}}, p.bounds...) {
		l, spent := held.limits, held.spent
		if l.MaxCostUSD > 0 {
			b.CostUSD = budget.Least(b.CostUSD, protocol.RoundUSD(max(0, l.MaxCostUSD-spent.CostUSD)))
		}
		if l.MaxTokens > 0 {
			b.Tokens = budget.Least(b.Tokens, max(0, l.MaxTokens-spent.Tokens))
		}
		if l.MaxTimeMs > 0 {
			b.TimeMs = budget.Least(b.TimeMs, max(0, l.MaxTimeMs-spent.TimeMs))
		}
	}
	return b
}

// withinBudget refuses to begin what a person asks for although the run has cost what
// it may.
func (p *position) withinBudget(role string) error {
	reason, over := moderator.OverBudget(p.state, role)
	if !over {
		return nil
	}
	return fault.Hinted(fault.New(protocol.CodeBudget, "thread %s: %s", p.id, reason), p.moreHints()...)
}

// moreHints say how to grant more, to the thread whose limit is reached.
func (p *position) moreHints() []string {
	if p.heldBy != nil {
		return budget.MoreHints(p.heldBy.thread, p.heldBy.limits)
	}
	return budget.MoreHints(p.id, p.state.Limits)
}

// More is what a person grants a run beyond its limits.
type More = budget.More

// Grant sets limits of what a thread may cost, those that are not zero, and grants more
// than the limits. It returns what holds now, a line each. What a run has cost beyond a
// limit is not taken out of what is granted. Errors are *protocol.Error.
func (e *Engine) Grant(ctx context.Context, thread string, l protocol.Limits, m More) ([]string, error) {
	h, err := e.lock(ctx, thread)
	if err != nil {
		return nil, fault.Of(err)
	}
	defer h.release()
	if h.ended != nil && h.ended.Status != protocol.StatusCompleted {
		return nil, hasEnded(h)
	}
	if h.facts, err = e.Heads.Facts(ctx, h.id); err != nil {
		return nil, fault.Of(err)
	}
	own := h.ownLimits()
	budget.Set(&own, l)
	h.facts.Limits = &own
	pos, err := e.knowing(h).position(ctx, h.id, h.head)
	if err == nil {
		err = pos.problem
	}
	if err != nil {
		return nil, fault.Of(err)
	}
	var lines []string
	if m.Asked() {
		if lines, err = budget.Grant(&own, pos.id, pos.state, pos.used.outcome, m); err != nil {
			return nil, err
		}
	}
	if err := e.Heads.SetFacts(ctx, h.id, heads.Facts{Limits: &own}); err != nil {
		return nil, fault.Of(err)
	}
	return lines, nil
}

// ownLimits are what people have said of the thread's limits.
func (h *lockedThread) ownLimits() heads.Limits {
	if h.facts.Limits == nil {
		return heads.Limits{}
	}
	return *h.facts.Limits
}

// keepReplaced keeps what the head has cost, that the step of this attempt is about to
// take the place of. It is counted once, however often that is tried.
func (a *attempt) keepReplaced(ctx context.Context) error {
	own := a.locked.ownLimits()
	r := own.Replaced
	if r.Last == a.locked.head {
		return nil
	}
	old, err := cas.Read[protocol.Step](ctx, a.nodes(), a.locked.head)
	if err != nil {
		return err
	}
	sum := budget.Sums{Unpriced: r.Unpriced, Uncounted: r.Uncounted, Blind: r.Blind}
	if r.Totals != nil {
		sum.Totals = *r.Totals
	}
	sum.Add(old)
	own.Replaced = heads.Replaced{Last: a.locked.head, Totals: &sum.Totals, Unpriced: sum.Unpriced, Uncounted: sum.Uncounted, Blind: sum.Blind}
	if err := a.Heads.SetFacts(ctx, a.locked.id, heads.Facts{Limits: &own}); err != nil {
		return err
	}
	a.locked.facts.Limits = &own
	return nil
}

// unknownCost says, once a step is made, that a limit cannot count it.
func (a *attempt) unknownCost(s protocol.Step) {
	l := a.pos.state.Limits
	if l.MaxCostUSD == 0 || s.Usage.IsPriced() {
		return
	}
	words := []string{fmt.Sprintf("what this step of role %q has cost is unknown", s.Role)}
	if l.MaxTokens > 0 && s.Usage.Counted() {
		words = append(words, "its tokens count, and maxTokens bounds the run")
	}
	a.warn(strings.Join(words, ": "))
}

// CheckBudget returns why a run of a workflow could not be held to its limits, if it
// could not: l are those that are said for this run alone. Errors are *protocol.Error.
func (e *Engine) CheckBudget(ctx context.Context, w protocol.Workflow, l protocol.Limits, o StepOptions) error {
	e = e.configOnce()
	inForce, err := e.limitsOf(ctx, w)
	if err != nil {
		return fault.Of(err)
	}
	inForce = budget.With(inForce, budget.Said(l))
	if inForce.MaxCostUSD == 0 {
		return nil
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
			e.warn(fmt.Sprintf("what role %q costs will be unknown (%s): maxTokens bounds it instead of maxCostUsd", role, why))
		}
	}
	return nil
}

// Spending is what a thread may cost and has cost; no limit of cost, no sums.
func (e *Engine) Spending(ctx context.Context, thread string) (protocol.Limits, moderator.Spent, error) {
	head, err := e.Head(ctx, thread)
	if err != nil {
		return protocol.Limits{}, moderator.Spent{}, err
	}
	p, err := e.position(ctx, thread, head)
	if err == nil && p.problem != nil {
		err = p.problem
	}
	if err != nil {
		return protocol.Limits{}, moderator.Spent{}, fault.Of(err)
	}
	return p.state.Limits, p.state.Spent, nil
}
