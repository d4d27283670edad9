package status

import (
	"context"
	"sync"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// What the children of a thread cost is what it costs: once their results are joined
// that is in its chain, and until then it is counted here. So a limit of the parent holds
// each of them.

// bound is a limit of a thread that another one plays a part of.
type bound struct {
	thread string
	limits protocol.Limits
	spent  moderator.Spent
}

// above are the limits of cost of those whose part a thread plays, the nearest first.
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
			return all, nil //nolint:nilerr // nobody is there to be held to anything
		}
		facts, err := r.Heads.Facts(ctx, id)
		if err != nil {
			return nil, err
		}
		t, err := thread.Open(ctx, r.Nodes(), head)
		if err != nil {
			return nil, err
		}
		w, err := r.Workflow(ctx, t.Start.Workflow)
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

// spentTogether is what a thread and its children have cost whose results it has not
// joined, with those that are played anew.
func (r *Reader) spentTogether(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (moderator.Spent, error) {
	sum, err := r.spentAlone(ctx, id, head, facts)
	if err != nil {
		return sum, err
	}
	t, err := thread.Open(ctx, r.Nodes(), head)
	if err != nil {
		return sum, err
	}
	w, err := r.Workflow(ctx, t.Start.Workflow)
	if err != nil || !hasChildren(w) {
		return sum, err
	}
	all, err := r.Heads.AllFacts(ctx)
	if err != nil && all == nil {
		return sum, err
	}
	return sum, r.addKids(ctx, &sum, all, map[string]protocol.Hash{id: head})
}

// addKids adds what the children of threads have cost, and theirs.
func (r *Reader) addKids(ctx context.Context, sum *moderator.Spent, all map[string]heads.Facts, of map[string]protocol.Hash) error {
	var ids []string
	for id, f := range all {
		if f.Parent != nil && of[f.Parent.Thread] == f.Parent.Head {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	stand, err := children.Look(ctx, r.Heads, ids, r.costs.ended(ids))
	if err != nil {
		return err
	}
	below := map[string]protocol.Hash{}
	for id, at := range stand {
		spent, err := r.spentBy(ctx, id, at, all[id])
		if err != nil {
			return err
		}
		*sum = budget.Plus(*sum, spent)
		if at.End == nil {
			below[id] = at.Head
		}
	}
	return r.addKids(ctx, sum, all, below)
}

// spentBy is [Reader.spentAlone]. A driver asks for it with each step of each child, so
// of those that have ended, or have not been begun, it is found out once.
func (r *Reader) spentBy(ctx context.Context, id string, at heads.Standing, facts heads.Facts) (moderator.Spent, error) {
	known, ok := r.costs.known(id)
	if ok && known.head == at.Head && (known.ended != nil || at.End == nil && !r.RunDir(id).Exists()) {
		return known.spent, nil
	}
	spent, err := r.spentAlone(ctx, id, at.Head, facts)
	if err == nil {
		r.costs.remember(id, at, spent)
	}
	return spent, err
}

// spentAlone is what a thread has cost by itself, with the tries that no step holds.
func (r *Reader) spentAlone(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (moderator.Spent, error) {
	sum, err := r.spent(ctx, id, head, facts)
	dir := r.RunDir(id)
	if err != nil || !dir.Exists() {
		return sum, err
	}
	t, err := thread.Open(ctx, r.Nodes(), head)
	if err != nil {
		return sum, err
	}
	var failed budget.Sums
	failed.Untold(dir.Tries(t))
	return budget.Plus(sum, budget.SpentOf(failed)), nil
}

// costs are what the children of a run have cost, by child.
type costs struct {
	mu sync.Mutex
	of map[string]cost
}

// cost is what a thread has cost up to a head.
type cost struct {
	head  protocol.Hash
	ended *heads.Ended
	spent moderator.Spent
}

// RememberingCosts returns a reader that finds out once what children have cost which do
// not go on.
func (r *Reader) RememberingCosts() *Reader {
	with := *r
	with.costs = &costs{of: map[string]cost{}}
	return &with
}

func (c *costs) known(id string) (cost, bool) {
	if c == nil {
		return cost{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.of[id]
	return s, ok
}

// ended are those of threads of which it is known how they have ended.
func (c *costs) ended(ids []string) map[string]heads.Ended {
	known := map[string]heads.Ended{}
	for _, id := range ids {
		if s, ok := c.known(id); ok && s.ended != nil {
			known[id] = *s.ended
		}
	}
	return known
}

func (c *costs) remember(id string, at heads.Standing, spent moderator.Spent) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[id] = cost{at.Head, at.End, spent}
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
			p.Next = moderator.Decision{Kind: moderator.Suspend, Role: p.Next.Role, Prompt: reason, Cause: moderator.ByBudget, Status: p.Next.Status}
			p.heldBy = &b
			return
		}
	}
}
