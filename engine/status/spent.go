package status

import (
	"context"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// What a whole run may cost, in dollars, tokens and time: the workflow says it, or the
// config, or a person for one thread; people grant more. What it has cost is the sum
// over its chain, with failed tries, replaced steps, and without what a fork has taken
// over. No sum ever begins anew.

// spent is what a thread has cost by itself, up to its head.
func (r *Reader) spent(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (moderator.Spent, error) {
	sum, err := r.SumUp(ctx, id, head)
	if err != nil {
		return moderator.Spent{}, err
	}
	all := budget.SpentOf(sum)
	if facts.Fork != nil {
		before, err := r.before(ctx, id, facts.Fork.Step)
		if err != nil {
			return moderator.Spent{}, err
		}
		all = budget.Less(all, budget.SpentOf(before))
	}
	if own := facts.Limits; own != nil {
		if old := own.Replaced; old.Totals != nil {
			all = budget.Plus(all, budget.SpentOf(budget.Sums{Totals: *old.Totals, Unpriced: old.Unpriced, Uncounted: old.Uncounted, Blind: old.Blind}))
		}
		all = budget.Less(all, moderator.Spent{Unpriced: own.More.Unpriced, Uncounted: own.More.Uncounted, Blind: own.More.Blind})
	}
	return all, nil
}

// Budget is what the run may still cost, by its own limits and by those of the threads
// whose part it plays.
func (p *Position) Budget() protocol.Budget {
	var b protocol.Budget
	for _, held := range append([]bound{{limits: p.State.Limits, spent: p.State.Spent}}, p.bounds...) {
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

// WithinBudget refuses to begin what a person asks for although the run has cost what
// it may.
func (p *Position) WithinBudget(role string) error {
	reason, over := moderator.OverBudget(p.State, role)
	if !over {
		return nil
	}
	return fault.Hinted(fault.New(protocol.CodeBudget, "thread %s: %s", p.ID, reason), p.moreHints()...)
}

// moreHints say how to grant more, to the thread whose limit is reached.
func (p *Position) moreHints() []string {
	if p.heldBy != nil {
		return budget.MoreHints(p.heldBy.thread, p.heldBy.limits)
	}
	return budget.MoreHints(p.ID, p.State.Limits)
}

// Spending is what a thread may cost and has cost; no limit of cost, no sums.
func (r *Reader) Spending(ctx context.Context, thread string) (protocol.Limits, moderator.Spent, error) {
	head, err := r.Head(ctx, thread)
	if err != nil {
		return protocol.Limits{}, moderator.Spent{}, err
	}
	p, err := r.Position(ctx, thread, head)
	if err == nil && p.Problem != nil {
		err = p.Problem
	}
	if err != nil {
		return protocol.Limits{}, moderator.Spent{}, fault.Of(err)
	}
	return p.State.Limits, p.State.Spent, nil
}
