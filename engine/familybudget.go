package engine

import (
	"context"

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
func (e *Engine) above(ctx context.Context, parent *heads.Parent) ([]bound, error) {
	if known, ok := e.bounds[parent.Thread]; ok {
		return known, nil
	}
	all, err := e.allAbove(ctx, parent)
	if err == nil && e.bounds != nil {
		e.bounds[parent.Thread] = all
	}
	return all, err
}

func (e *Engine) allAbove(ctx context.Context, parent *heads.Parent) ([]bound, error) {
	var all []bound
	for parent != nil {
		id := parent.Thread
		head, ended, err := e.lookup(ctx, id)
		if err != nil || ended != nil {
			return all, nil //nolint:nilerr // nobody is there to be held to anything
		}
		facts, err := e.Heads.Facts(ctx, id)
		if err != nil {
			return nil, err
		}
		t, err := thread.Open(ctx, e.nodes(), head)
		if err != nil {
			return nil, err
		}
		w, err := e.workflow(ctx, t.Start.Workflow)
		if err != nil {
			return nil, err
		}
		b := bound{thread: id}
		if b.limits, err = e.limitsOf(ctx, w); err != nil {
			return nil, err
		}
		b.limits = budget.Granted(budget.With(b.limits, facts.Limits), facts.Limits)
		if budget.Bounded(b.limits) {
			if b.spent, err = e.spentTogether(ctx, id, head, facts); err != nil {
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
func (e *Engine) spentTogether(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (moderator.Spent, error) {
	sum, err := e.spentAlone(ctx, id, head, facts)
	if err != nil {
		return sum, err
	}
	t, err := thread.Open(ctx, e.nodes(), head)
	if err != nil {
		return sum, err
	}
	w, err := e.workflow(ctx, t.Start.Workflow)
	if err != nil || !hasChildren(w) {
		return sum, err
	}
	all, err := e.Heads.AllFacts(ctx)
	if err != nil && all == nil {
		return sum, err
	}
	return sum, e.addKids(ctx, &sum, all, map[string]protocol.Hash{id: head})
}

// addKids adds what the children of threads have cost, and theirs.
func (e *Engine) addKids(ctx context.Context, sum *moderator.Spent, all map[string]heads.Facts, of map[string]protocol.Hash) error {
	var ids []string
	for id, f := range all {
		if f.Parent != nil && of[f.Parent.Thread] == f.Parent.Head {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	stand, err := children.Look(ctx, e.Heads, ids, e.driven.ended(ids))
	if err != nil {
		return err
	}
	below := map[string]protocol.Hash{}
	for id, at := range stand {
		spent, err := e.spentBy(ctx, id, at, all[id])
		if err != nil {
			return err
		}
		*sum = budget.Plus(*sum, spent)
		if at.End == nil {
			below[id] = at.Head
		}
	}
	return e.addKids(ctx, sum, all, below)
}

// spentBy is [Engine.spentAlone]. A driver asks for it with each step of each child, so
// of those that have ended, or have not been begun, it is found out once.
func (e *Engine) spentBy(ctx context.Context, id string, at heads.Standing, facts heads.Facts) (moderator.Spent, error) {
	known, ok := e.driven.spending(id)
	if ok && known.head == at.Head && (known.ended != nil || at.End == nil && !e.runDir(id).Exists()) {
		return known.spent, nil
	}
	spent, err := e.spentAlone(ctx, id, at.Head, facts)
	if err == nil {
		e.driven.remember(id, at, spent)
	}
	return spent, err
}

// spentAlone is what a thread has cost by itself, with the tries that no step holds.
func (e *Engine) spentAlone(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (moderator.Spent, error) {
	sum, err := e.spent(ctx, id, head, facts)
	dir := e.runDir(id)
	if err != nil || !dir.Exists() {
		return sum, err
	}
	t, err := thread.Open(ctx, e.nodes(), head)
	if err != nil {
		return sum, err
	}
	var failed budget.Sums
	failed.Untold(dir.Tries(t))
	return budget.Plus(sum, budget.SpentOf(failed)), nil
}

// spending is what a thread has cost up to a head.
type spending struct {
	head  protocol.Hash
	ended *heads.Ended
	spent moderator.Spent
}

func (d *driven) spending(id string) (spending, bool) {
	if d == nil {
		return spending{}, false
	}
	d.spentMu.Lock()
	defer d.spentMu.Unlock()
	s, ok := d.spent[id]
	return s, ok
}

// ended are those of threads of which it is known how they have ended.
func (d *driven) ended(ids []string) map[string]heads.Ended {
	known := map[string]heads.Ended{}
	for _, id := range ids {
		if s, ok := d.spending(id); ok && s.ended != nil {
			known[id] = *s.ended
		}
	}
	return known
}

func (d *driven) remember(id string, at heads.Standing, spent moderator.Spent) {
	if d == nil {
		return
	}
	d.spentMu.Lock()
	defer d.spentMu.Unlock()
	d.spent[id] = spending{at.Head, at.End, spent}
}

func hasChildren(w protocol.Workflow) bool {
	for _, r := range w.Roles {
		if r.HasChildren() {
			return true
		}
	}
	return false
}

// heldAbove suspends a child whose parent may not cost more.
func (p *position) heldAbove() {
	for _, b := range p.bounds {
		if reason, over := moderator.OverBudget(moderator.State{Limits: b.limits, Spent: b.spent}, p.next.Role); over {
			p.next = moderator.Decision{Kind: moderator.Suspend, Role: p.next.Role, Prompt: reason, Cause: moderator.ByBudget, Status: p.next.Status}
			p.heldBy = &b
			return
		}
	}
}
