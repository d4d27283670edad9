package status

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
)

// Limits are those that a thread of a workflow begins with, own those that are said for
// it alone. Zero is no limit. Errors are *protocol.Error.
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

// limitsOf are a workflow's limits, filled up from the config.
func (r *Reader) limitsOf(ctx context.Context, w protocol.Workflow) (protocol.Limits, error) {
	var l protocol.Limits
	if w.Limits != nil {
		l = *w.Limits
	}
	if l.MaxSteps > 0 && l.MaxVisitsPerRole > 0 && l.MaxCostUSD > 0 && l.MaxTokens > 0 && l.MaxTimeMs > 0 {
		return l, nil
	}
	c, err := r.Config(ctx)
	if err != nil {
		return l, err
	}
	defaults := protocol.LimitsConfig{}
	if c.Limits != nil {
		defaults = *c.Limits
	}
	l.MaxSteps = cmp.Or(l.MaxSteps, defaults.MaxSteps, protocol.DefaultMaxSteps)
	l.MaxVisitsPerRole = cmp.Or(l.MaxVisitsPerRole, defaults.MaxVisitsPerRole)
	l.MaxCostUSD = cmp.Or(l.MaxCostUSD, defaults.MaxCostUSD)
	l.MaxTokens = cmp.Or(l.MaxTokens, defaults.MaxTokens)
	if l.MaxTimeMs == 0 && defaults.MaxTime != "" {
		t, err := time.ParseDuration(defaults.MaxTime)
		if err != nil || t < 0 {
			return l, fault.New(protocol.CodeInvalid, "limits.maxTime must be a time such as 30m or 2h, got %q", defaults.MaxTime)
		}
		l.MaxTimeMs = t.Milliseconds()
	}
	return l, nil
}

// visits counts each role's turns since a limit was last lifted. A step holds
// the counts since the thread began; only when those reach the limit is the
// thread read back to where it was lifted.
func visits(ctx context.Context, t *thread.Thread, l protocol.Limits) (map[string]int, error) {
	if t.Last == nil {
		return nil, nil
	}
	if t.Last.LimitBase == 0 || l.MaxVisitsPerRole == 0 || slices.Max(append(slices.Collect(maps.Values(t.Last.Visits)), 0)) < l.MaxVisitsPerRole {
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
