package engine

import (
	"context"
	"maps"

	"github.com/united-workforce/uwf/cas/heads"
)

// agentsFor adds to the options of a thread's steps the agents that a person has chosen for
// its earlier ones, and keeps those chosen now. They are facts of this machine: neither a
// remote nor a bundle brings any. A scenario's agents are not kept.
func (e *Engine) agentsFor(ctx context.Context, h *lockedThread, o StepOptions) (StepOptions, error) {
	if o.Scenario != "" {
		return o, nil
	}
	before, err := e.ChosenAgents(ctx, h.facts)
	if err != nil {
		return o, err
	}
	o.earlier = before
	wish := o.Wish()
	now := e.Casting().Chosen(ctx, wish)
	if maps.Equal(now, before) || e.Casting().Named(ctx, wish) != nil { // the step says what is wrong
		return o, nil
	}
	h.facts.Agents = now
	return o, e.Heads.SetFacts(ctx, h.id, heads.Facts{Agents: now})
}
