package thread

import (
	"cmp"
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// Survivors looks through the whole store for what is left of a chain that cannot
// be read beyond a step, since the node before it is lost. It returns the newest
// steps that the chain can have gone through and that are whole back to the
// start: one, unless forks have steps at the same place, too. Nodes that cannot
// be read are passed over.
func Survivors(ctx context.Context, s cas.Store, after Step) ([]cas.Hash, error) {
	var found []Step
	for h, err := range s.All(ctx, "") {
		if err != nil || h == *after.Prev {
			continue
		}
		n, err := s.Get(ctx, h)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			continue
		}
		if step, err := cas.As[protocol.Step](ctx, s, n); err == nil && precedes(step, after) {
			found = append(found, Step{Hash: h, Step: step})
		}
	}
	slices.SortFunc(found, func(a, b Step) int { return cmp.Or(b.Index-a.Index, cmp.Compare(a.Hash, b.Hash)) })
	var whole []cas.Hash
	for i, step := range found {
		if len(whole) > 0 && step.Index != found[i-1].Index {
			break
		}
		if isWhole(ctx, s, step.Hash) {
			whole = append(whole, step.Hash)
		}
	}
	return whole, nil
}

// precedes reports whether a step can stand somewhere before another: it has the
// same start, ended before the other began, and no role has had more turns.
func precedes(s protocol.Step, after Step) bool {
	if s.Start != after.Start || s.Index >= after.Index-1 || s.CompletedAtMs > after.StartedAtMs {
		return false
	}
	for role, n := range s.Visits {
		if n > after.Visits[role] {
			return false
		}
	}
	return true
}

// isWhole reads a chain to its start, with what its steps have delivered.
func isWhole(ctx context.Context, s cas.Store, head cas.Hash) bool {
	t, err := Open(ctx, s, head)
	if err != nil {
		return false
	}
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return false
		}
		if _, err := t.Shown(ctx, step); err != nil {
			return false
		}
	}
	return true
}
