package status

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
)

// Totals sums up the steps of a thread's chain up to head. It reads the steps
// since the last one that was summed up, and keeps the new sum if it can: a home
// that cannot be written will do. It takes no lock. An error is of a node that
// has to be read.
func (r *Reader) Totals(ctx context.Context, id string, head protocol.Hash) (protocol.Totals, error) {
	sum, err := r.SumUp(ctx, id, head)
	return sum.Totals, err
}

// SumUp is [Reader.Totals], with what is not known of the runs of agents.
func (r *Reader) SumUp(ctx context.Context, id string, head protocol.Hash) (budget.Sums, error) {
	var sum budget.Sums
	t, err := thread.Open(ctx, r.Store, head)
	if err != nil {
		return sum, fault.Of(err)
	}
	dir := budget.File{Dir: r.RunDir(id)}
	marks := dir.Marks()
	var newer []thread.Step // newest first
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return sum, fault.Of(err)
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
