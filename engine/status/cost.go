package status

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Limits returns the initial limits of a thread; own are those set for this thread alone. Zero means no
// limit. Errors are *protocol.Error.
func (r *Reader) Limits(ctx context.Context, w protocol.Workflow, own protocol.Limits) (protocol.Limits, error) {
	l, err := r.workflowLimits(ctx, w)
	if err != nil {
		return l, fault.Of(err)
	}
	return budget.With(l, budget.ToFacts(own)), nil
}

// limitsInForce returns a thread's limits, including users' changes for this thread alone.
func (r *Reader) limitsInForce(ctx context.Context, p *Position) (protocol.Limits, error) {
	l, err := r.workflowLimits(ctx, p.Workflow)
	if err != nil && p.Thread.Last != nil { // before the first step, no limit is reached, and later reads report the error
		return l, err
	}
	return budget.Granted(budget.With(l, p.Facts.Limits), p.Facts.Limits), nil
}

// workflowLimits returns a workflow's limits, with defaults from the config. A workflow that sets all limits
// doesn't need the config.
func (r *Reader) workflowLimits(ctx context.Context, w protocol.Workflow) (protocol.Limits, error) {
	var l protocol.Limits
	if w.Limits != nil {
		l = *w.Limits
	}
	if l.Complete() {
		return l, nil
	}
	c, err := r.Config(ctx)
	if err != nil {
		return l, err
	}
	if c.Limits != nil {
		defaults, err := c.Limits.Limits()
		if err != nil {
			return l, err
		}
		l = l.Or(defaults)
	}
	return l.Or(protocol.Limits{MaxSteps: protocol.DefaultMaxSteps}), nil
}

// visits counts each role's visits since a limit was last lifted. A step holds the counts since the thread's
// start; visits reads back only if those reach the limit.
func visits(ctx context.Context, t *thread.Thread, l protocol.Limits) (map[string]int, error) {
	if t.Last == nil {
		return nil, nil
	}
	if t.Last.LimitBase == 0 || l.MaxVisitsPerRole == 0 || slices.Max(append(slices.Collect(maps.Values(t.Last.Visits)),
		0)) < l.MaxVisitsPerRole {
		return t.Last.Visits, nil
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Index >= t.Last.LimitBase {
			continue
		}
		since := map[string]int{}
		for role, n := range t.Last.Visits {
			since[role] = n - s.Visits[role]
		}
		return since, nil
	}
	return t.Last.Visits, nil
}

// The workflow, the config, or a user (for one thread) limits the cost of a whole run in dollars, tokens and
// time. Users can grant more. The cost is the sum over the thread's chain, including failed tries and
// replaced steps, but without the steps that a fork shares with its original. Sums are never reset.

// Totals returns the cost of a thread's chain up to head. It reads only the steps since the last saved sum,
// and saves the new sum if the home is writable. It takes no lock. An error means that a required node is
// unreadable.
func (r *Reader) Totals(ctx context.Context, id string, head protocol.Hash) (protocol.Totals, error) {
	sum, err := r.SumUp(ctx, id, head)
	if err == nil {
		var tries runfiles.Tries
		tries, err = r.pending(ctx, id, head)
		sum.AddPending(tries.InStep())
	}
	return sum.Totals, err
}

// pending returns the failed tries of a thread that are not yet part of a step.
func (r *Reader) pending(ctx context.Context, id string, head protocol.Hash) (runfiles.Tries, error) {
	dir := r.RunDir(id)
	if _, err := os.Lstat(dir.File(runfiles.TriesFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // avoid reading nodes
	}
	t, err := thread.Open(ctx, r.Nodes(), head)
	if err != nil {
		return nil, err
	}
	return dir.Tries(t), nil
}

// SumUp is like [Reader.Totals], but also returns what is unknown about the runs of agents.
func (r *Reader) SumUp(ctx context.Context, id string, head protocol.Hash) (_ budget.Sums, err error) {
	defer fault.Coded(&err)
	var sum budget.Sums
	t, err := thread.Open(ctx, r.Store, head)
	if err != nil {
		return sum, err
	}
	dir := budget.File{Dir: r.RunDir(id)}
	marks, _ := dir.Kept()
	var newer []thread.Step // newest first
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return sum, err
		}
		if at := budget.Find(marks, step.Hash, step.Index); at != nil {
			sum = at.Sums
			break
		}
		newer = append(newer, step)
	}
	if len(newer) == 0 {
		return sum, nil
	}
	last := newer[0]
	for i := len(newer) - 1; i > 0; i-- { // oldest first, so that floating-point sums are reproducible
		sum.Add(newer[i].Step)
	}
	if r.ReadOnly {
		sum.Add(last.Step)
		return sum, nil
	}
	return dir.Keep(marks, last.Hash, last.Step, sum), nil
}

// costAtFork returns the cost of a fork's chain at the time of the fork. It is computed once.
func (r *Reader) costAtFork(ctx context.Context, id string, step protocol.Hash) (budget.Sums, error) {
	dir := budget.File{Dir: r.RunDir(id)}
	marks, _ := dir.Kept()
	if i := slices.IndexFunc(marks, func(m budget.Mark) bool { return m.Fork && m.Head == step }); i >= 0 {
		return marks[i].Sums, nil
	}
	sum, err := r.SumUp(ctx, id, step)
	if err == nil && !r.ReadOnly {
		own := slices.DeleteFunc(marks, func(m budget.Mark) bool { return m.Fork })
		dir.KeepMarks(append(own, budget.Mark{Head: step, Sums: sum, Fork: true}))
	}
	return sum, err
}

// Cost returns the cost of a run, including tries and steps that aren't in its chain.
func (r *Reader) Cost(ctx context.Context, id string, head protocol.Hash) (protocol.Totals, error) {
	sum, err := r.Totals(ctx, id, head)
	facts, unknown := r.Heads.Facts(ctx, id)
	if own := facts.Limits; own != nil {
		gone := budget.Replaced(own.Replaced)
		sum.Spend(gone.Usage)
		sum.DurationMs, sum.StepsWithoutCost = sum.DurationMs+gone.DurationMs, sum.StepsWithoutCost+gone.StepsWithoutCost
	}
	return sum, cmp.Or(err, unknown)
}

// Budget returns what the run may still cost under its own limits and those of its ancestors.
func (p *Position) Budget() protocol.Budget {
	var b protocol.Budget
	for _, held := range append([]bound{{limits: p.State.Limits, spent: p.State.Spent}}, p.bounds...) {
		l, left := held.limits, held.limits.Amount().Less(held.spent)
		if l.MaxCostUSD > 0 {
			b.CostUSD = budget.Least(b.CostUSD, left.CostUSD)
		}
		if l.MaxTokens > 0 {
			b.Tokens = budget.Least(b.Tokens, left.Tokens)
		}
		if l.MaxTimeMs > 0 {
			b.TimeMs = budget.Least(b.TimeMs, left.TimeMs)
		}
	}
	return b
}

// WithinBudget returns an error if a user asks for more work after the run has used up its budget.
func (p *Position) WithinBudget(role string) error {
	reason, over := moderator.OverBudget(p.State, role)
	if !over {
		return nil
	}
	err := fault.New(protocol.CodeLimit, "thread %s: %s", p.ID, reason)
	err.Reasons = p.limitReached()
	return err
}

// limitReached returns the reason for a thread that has stopped at its own limit or an ancestor's.
func (p *Position) limitReached() []protocol.Reason {
	by := bound{p.ID, p.State.Limits, p.State.Spent}
	if p.heldBy != nil {
		by = *p.heldBy
	}
	reached := cmp.Or(moderator.Reached(by.limits, by.spent), p.UsedUp)
	return []protocol.Reason{protocol.Why("limit-reached", "thread", by.thread, "limit", budget.Limit(by.limits, reached))}
}

// Spending returns a thread's limits and cost. The cost is zero if the thread has no cost limit.
func (r *Reader) Spending(ctx context.Context, thread string) (protocol.Limits, protocol.Amount, error) {
	p, err := r.HeadPosition(ctx, thread)
	if err == nil && p.Problem != nil {
		err = p.Problem
	}
	if err != nil {
		return protocol.Limits{}, protocol.Amount{}, fault.Of(err)
	}
	return p.State.Limits, p.State.Spent, nil
}

// The cost of a thread includes its children's. Once their results are joined, the chain contains their cost;
// until then it is added here. So the parent's limit applies to each child.

// bound is a limit of a parent thread.
type bound struct {
	thread string
	limits protocol.Limits
	spent  protocol.Amount
}

// ancestorLimits returns the cost limits of a thread's ancestors, nearest first.
func (r *Reader) ancestorLimits(ctx context.Context, parent *heads.Parent) ([]bound, error) {
	if known, ok := r.bounds[parent.Thread]; ok {
		return known, nil
	}
	all, err := r.readAncestorLimits(ctx, parent)
	if err == nil && r.bounds != nil {
		r.bounds[parent.Thread] = all
	}
	return all, err
}

func (r *Reader) readAncestorLimits(ctx context.Context, parent *heads.Parent) ([]bound, error) {
	var all []bound
	for range heads.Generations {
		if parent == nil {
			return all, nil
		}
		id := parent.Thread
		head, ended, err := r.Lookup(ctx, id)
		if ended != nil || errors.Is(err, heads.ErrNoThread) {
			return all, nil // no further ancestor's limit applies
		}
		if err != nil {
			return nil, err
		}
		facts, err := r.Heads.Facts(ctx, id)
		if err != nil {
			return nil, err
		}
		_, w, err := r.chain(ctx, head)
		if err != nil {
			return nil, err
		}
		b := bound{thread: id}
		if b.limits, err = r.workflowLimits(ctx, w); err != nil {
			return nil, err
		}
		b.limits = budget.Granted(budget.With(b.limits, facts.Limits), facts.Limits)
		if budget.Bounded(b.limits) {
			if b.spent, err = r.costWithChildren(ctx, id, head, facts); err != nil {
				return nil, err
			}
			all = append(all, b)
		}
		parent = facts.Parent
	}
	return nil, fault.New(protocol.CodeCorrupt, "a thread has %d ancestors or more", heads.Generations)
}

// costWithChildren returns the cost of a thread and its descendants that are not joined yet, or whose role is being
// repeated.
func (r *Reader) costWithChildren(ctx context.Context, id string, head protocol.Hash,
	facts heads.Facts) (protocol.Amount, error) {
	sum, err := r.ownCost(ctx, id, head, facts)
	if err != nil {
		return sum, err
	}
	_, w, err := r.chain(ctx, head)
	if err != nil || !hasChildren(w) {
		return sum, err
	}
	all, err := r.Heads.AllFacts(ctx)
	if err != nil && all == nil {
		return sum, err
	}
	for parents := map[string]protocol.Hash{id: head}; ; {
		var ids []string
		for child, f := range all {
			if f.Parent != nil && f.Parent.Head != "" && parents[f.Parent.Thread] == f.Parent.Head && child != id {
				ids = append(ids, child)
			}
		}
		if len(ids) == 0 {
			return sum, nil
		}
		states, err := children.Look(ctx, r.Heads, ids, r.endedOf(ids))
		if err != nil {
			return sum, err
		}
		clear(parents)
		for child, at := range states {
			spent, err := r.cachedCost(ctx, child, at, all[child])
			if err != nil {
				return sum, err
			}
			sum = sum.Plus(spent)
			if at.End == nil {
				parents[child] = at.Head
			}
		}
	}
}

// cachedCost caches [Reader.ownCost]. A driver calls it at each step of each child, so the cost of children
// that have ended or not started is read only once.
func (r *Reader) cachedCost(ctx context.Context, id string, at heads.ThreadState,
	facts heads.Facts) (protocol.Amount, error) {
	known, ok := r.knownCost(id)
	if ok && known.head == at.Head && (known.ended != nil || at.End == nil && !r.RunDir(id).Exists()) {
		return known.spent, nil
	}
	spent, err := r.ownCost(ctx, id, at.Head, facts)
	if err == nil && r.costs != nil {
		r.costs.Store(id, cost{at.Head, at.End, spent})
	}
	return spent, err
}

// ownCost returns the cost of a thread without its children, including tries that made no step.
func (r *Reader) ownCost(ctx context.Context, id string, head protocol.Hash,
	facts heads.Facts) (protocol.Amount, error) {
	sum, err := r.SumUp(ctx, id, head)
	tries, unread := r.pending(ctx, id, head)
	if err := cmp.Or(err, unread); err != nil {
		return protocol.Amount{}, err
	}
	sum.Unreported(tries)
	all := budget.SpentOf(sum)
	if facts.Fork != nil {
		before, err := r.costAtFork(ctx, id, facts.Fork.Step)
		if err != nil {
			return protocol.Amount{}, err
		}
		all = all.Less(budget.SpentOf(before))
	}
	if own := facts.Limits; own != nil {
		all = all.Plus(budget.SpentOf(budget.Replaced(own.Replaced)))
		all = all.Less(protocol.Amount{Unknown: own.More.Unknown})
	}
	return all, nil
}

// cost is the cost of a thread up to a head.
type cost struct {
	head  protocol.Hash
	ended *heads.Ended
	spent protocol.Amount
}

// RememberingCosts returns a reader that caches the cost of children that are not running.
func (r *Reader) RememberingCosts() *Reader {
	with := *r
	with.costs = &sync.Map{}
	return &with
}

func (r *Reader) knownCost(id string) (c cost, ok bool) {
	if r.costs == nil {
		return c, false
	}
	known, ok := r.costs.Load(id)
	c, _ = known.(cost)
	return c, ok
}

// endedOf returns the ends of those threads that are known to have ended.
func (r *Reader) endedOf(ids []string) map[string]heads.Ended {
	known := map[string]heads.Ended{}
	for _, id := range ids {
		if c, ok := r.knownCost(id); ok && c.ended != nil {
			known[id] = *c.ended
		}
	}
	return known
}

func hasChildren(w protocol.Workflow) bool {
	for _, role := range w.Roles {
		if role.HasChildren() {
			return true
		}
	}
	return false
}

// applyParentLimit suspends a child whose parent has used up its budget.
func (p *Position) applyParentLimit() {
	for _, b := range p.bounds {
		if reason, over := moderator.OverBudget(moderator.State{Limits: b.limits, Spent: b.spent}, p.Next.Role); over {
			p.Next = moderator.Decision{Kind: moderator.Suspend, Role: p.Next.Role, Prompt: reason, Cause: moderator.ByBudget,
				Status: p.Next.Status}
			p.heldBy = &b
			return
		}
	}
}
