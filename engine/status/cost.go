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

// Limits returns the limits that a thread of a workflow begins with; own are those set for
// this thread alone. Zero is no limit. Errors are *protocol.Error.
func (r *Reader) Limits(ctx context.Context, w protocol.Workflow, own protocol.Limits) (protocol.Limits, error) {
	l, err := r.limitsOf(ctx, w)
	if err != nil {
		return l, fault.Of(err)
	}
	return budget.With(l, budget.Said(own)), nil
}

// limits are the limits in force, with what people have said of this thread.
func (r *Reader) limits(ctx context.Context, p *Position) (protocol.Limits, error) {
	l, err := r.limitsOf(ctx, p.Workflow)
	if err != nil && p.Thread.Last != nil { // without a step none is reached: whoever needs the config will say so
		return l, err
	}
	return budget.Granted(budget.With(l, p.Facts.Limits), p.Facts.Limits), nil
}

// limitsOf returns a workflow's limits, with missing ones taken from the config. A workflow
// that sets them all works without a config.
func (r *Reader) limitsOf(ctx context.Context, w protocol.Workflow) (protocol.Limits, error) {
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

// visits counts each role's turns since a limit was last lifted. A step holds
// the counts since the thread began; only when those reach the limit is the
// thread read back to where it was lifted.
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

// The workflow, the config, or a person (for one thread) limits what a whole run may cost, in
// dollars, tokens and time; people can grant more. What it has cost is the sum over its chain,
// including failed tries and replaced steps, but not the steps that a fork took over. No sum
// is ever reset.

// Totals sums up the steps of a thread's chain up to head. It reads only the steps since the
// last saved sum, and saves the new one if the home is writable. It takes no lock. An error
// means that a node it needs cannot be read.
func (r *Reader) Totals(ctx context.Context, id string, head protocol.Hash) (protocol.Totals, error) {
	sum, err := r.SumUp(ctx, id, head)
	if err == nil {
		var tries runfiles.Tries
		tries, err = r.pending(ctx, id, head)
		sum.AddPending(tries.InStep())
	}
	return sum.Totals, err
}

// pending are the failed tries of a thread that no step holds yet.
func (r *Reader) pending(ctx context.Context, id string, head protocol.Hash) (runfiles.Tries, error) {
	dir := r.RunDir(id)
	if _, err := os.Lstat(dir.File(runfiles.TriesFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no node has to be read
	}
	t, err := thread.Open(ctx, r.Nodes(), head)
	if err != nil {
		return nil, err
	}
	return dir.Tries(t), nil
}

// SumUp is [Reader.Totals], and also returns what is not known about the runs of agents.
func (r *Reader) SumUp(ctx context.Context, id string, head protocol.Hash) (_ budget.Sums, err error) {
	defer fault.Coded(&err)
	var sum budget.Sums
	t, err := thread.Open(ctx, r.Store, head)
	if err != nil {
		return sum, err
	}
	dir := budget.File{Dir: r.RunDir(id)}
	marks := dir.Marks()
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
	for i := len(newer) - 1; i > 0; i-- { // oldest first, as they were made: sums of costs then agree to the last bit
		sum.Add(newer[i].Step)
	}
	if r.ReadOnly {
		sum.Add(last.Step)
		return sum, nil
	}
	return dir.Keep(marks, last.Hash, last.Step, sum), nil
}

// before is what a fork's chain had cost when it was forked. It is summed up once.
func (r *Reader) before(ctx context.Context, id string, step protocol.Hash) (budget.Sums, error) {
	dir := budget.File{Dir: r.RunDir(id)}
	marks := dir.Marks()
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

// Cost is what a run has cost, also in tries and steps that its chain does not have.
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

// Budget is what the run may still cost, by its own limits and by those of the threads above
// it, whose roles it plays.
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

// WithinBudget returns an error if a person asks for more work after the run has used up its
// budget.
func (p *Position) WithinBudget(role string) error {
	reason, over := moderator.OverBudget(p.State, role)
	if !over {
		return nil
	}
	err := fault.New(protocol.CodeLimit, "thread %s: %s", p.ID, reason)
	err.Reasons = p.limitReached()
	return err
}

// limitReached is the reason of a thread that stands still at a limit: its own, or one of those above it.
func (p *Position) limitReached() []protocol.Reason {
	by := bound{p.ID, p.State.Limits, p.State.Spent}
	if p.heldBy != nil {
		by = *p.heldBy
	}
	reached := cmp.Or(moderator.Reached(by.limits, by.spent), p.UsedUp)
	return []protocol.Reason{protocol.Why("limit-reached", "thread", by.thread, "limit", budget.Limit(by.limits, reached))}
}

// Spending is what a thread may cost and has cost; no limit of cost, no sums.
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

// The cost of a thread includes that of its children. Once their results are joined, the chain
// contains it; until then it is added here. So the parent's limit applies to each of them.

// bound is a limit of a thread for which another thread plays a role.
type bound struct {
	thread string
	limits protocol.Limits
	spent  protocol.Amount
}

// above returns the cost limits of the threads above this one, the nearest first.
func (r *Reader) above(ctx context.Context, parent *heads.Parent) ([]bound, error) {
	if known, ok := r.bounds[parent.Thread]; ok {
		return known, nil
	}
	all, err := r.allAbove(ctx, parent)
	if err == nil && r.bounds != nil {
		r.bounds[parent.Thread] = all
	}
	return all, err
}

func (r *Reader) allAbove(ctx context.Context, parent *heads.Parent) ([]bound, error) {
	var all []bound
	for parent != nil {
		id := parent.Thread
		head, ended, err := r.Lookup(ctx, id)
		if err != nil || ended != nil {
			return all, nil //nolint:nilerr // no thread is left whose limit could apply
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
		if b.limits, err = r.limitsOf(ctx, w); err != nil {
			return nil, err
		}
		b.limits = budget.Granted(budget.With(b.limits, facts.Limits), facts.Limits)
		if budget.Bounded(b.limits) {
			if b.spent, err = r.spentTogether(ctx, id, head, facts); err != nil {
				return nil, err
			}
			all = append(all, b)
		}
		parent = facts.Parent
	}
	return all, nil
}

// spentTogether is what a thread has cost, together with those of its children whose results
// it has not joined yet, or whose role is being played again.
func (r *Reader) spentTogether(ctx context.Context, id string, head protocol.Hash,
	facts heads.Facts) (protocol.Amount, error) {
	sum, err := r.spentAlone(ctx, id, head, facts)
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
	return sum, r.addChildren(ctx, &sum, all, map[string]protocol.Hash{id: head})
}

// addChildren adds what the children of threads, and their children in turn, have cost.
func (r *Reader) addChildren(ctx context.Context, sum *protocol.Amount, all map[string]heads.Facts,
	of map[string]protocol.Hash) error {
	var ids []string
	for id, f := range all {
		if f.Parent != nil && of[f.Parent.Thread] == f.Parent.Head {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	stand, err := children.Look(ctx, r.Heads, ids, r.endedOf(ids))
	if err != nil {
		return err
	}
	below := map[string]protocol.Hash{}
	for id, at := range stand {
		spent, err := r.spentBy(ctx, id, at, all[id])
		if err != nil {
			return err
		}
		*sum = sum.Plus(spent)
		if at.End == nil {
			below[id] = at.Head
		}
	}
	return r.addChildren(ctx, sum, all, below)
}

// spentBy caches [Reader.spentAlone]. A driver asks for it at each step of each child, so the
// cost of children that have ended or not begun is read only once.
func (r *Reader) spentBy(ctx context.Context, id string, at heads.Standing,
	facts heads.Facts) (protocol.Amount, error) {
	known, ok := r.knownCost(id)
	if ok && known.head == at.Head && (known.ended != nil || at.End == nil && !r.RunDir(id).Exists()) {
		return known.spent, nil
	}
	spent, err := r.spentAlone(ctx, id, at.Head, facts)
	if err == nil && r.costs != nil {
		r.costs.Store(id, cost{at.Head, at.End, spent})
	}
	return spent, err
}

// spentAlone is what a thread has cost by itself, including tries that left no step.
func (r *Reader) spentAlone(ctx context.Context, id string, head protocol.Hash,
	facts heads.Facts) (protocol.Amount, error) {
	sum, err := r.SumUp(ctx, id, head)
	tries, unread := r.pending(ctx, id, head)
	if err := cmp.Or(err, unread); err != nil {
		return protocol.Amount{}, err
	}
	sum.Unreported(tries)
	all := budget.SpentOf(sum)
	if facts.Fork != nil {
		before, err := r.before(ctx, id, facts.Fork.Step)
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

// cost is what a thread has cost up to a head.
type cost struct {
	head  protocol.Hash
	ended *heads.Ended
	spent protocol.Amount
}

// RememberingCosts returns a reader that reads the cost of children that are not running only
// once.
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

// endedOf returns how each of the threads ended, for those that are known to have ended.
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

// heldAbove suspends a child whose parent may not cost more.
func (p *Position) heldAbove() {
	for _, b := range p.bounds {
		if reason, over := moderator.OverBudget(moderator.State{Limits: b.limits, Spent: b.spent}, p.Next.Role); over {
			p.Next = moderator.Decision{Kind: moderator.Suspend, Role: p.Next.Role, Prompt: reason, Cause: moderator.ByBudget,
				Status: p.Next.Status}
			p.heldBy = &b
			return
		}
	}
}
