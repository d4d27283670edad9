package casting

import (
	"context"

	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
)

// Worst is what a role may cost in one run, if each of its steps costs what a step may.
// What the run may cost as a whole bounds all of them together.
type Worst struct {
	Visits  int      `json:"visits"`  // 0: any number
	CostUSD *float64 `json:"costUsd"` // nil: nothing bounds it
	Tokens  *int64   `json:"tokens"`
}

// Worst finds out what a role may cost, with the agent that would play it.
func (r Caster) Worst(ctx context.Context, w protocol.Workflow, l protocol.Limits, c Casting) Worst {
	out := Worst{Visits: 1}
	if returns(w, c.Role) {
		out.Visits = l.MaxVisitsPerRole
		if l.MaxSteps > 0 && (out.Visits == 0 || l.MaxSteps < out.Visits) {
			out.Visits = l.MaxSteps
		}
	}
	usd, tokens := r.stepLimits(ctx, c)
	if w.Roles[c.Role].Player() != protocol.PlayedByAgent {
		usd = new(float64)
	}
	if usd != nil && out.Visits > 0 {
		all := protocol.RoundUSD(*usd * float64(out.Visits))
		out.CostUSD = &all
	}
	if tokens > 0 && out.Visits > 0 {
		all := tokens * int64(out.Visits)
		out.Tokens = &all
	}
	return out
}

// stepLimits are what one step of an agent may cost, as far as the config bounds it.
func (r Caster) stepLimits(ctx context.Context, c Casting) (usd *float64, tokens int64) {
	settings, err := r.Config(ctx)
	if err != nil || len(c.Command) == 0 {
		return nil, 0
	}
	most := settings.Agents[c.Agent].MaxCostUSD
	if config.OwnsModels(c.Command[0]) {
		most = 0
		if b := settings.Builtin; b != nil {
			most, tokens = b.MaxCostUSD, int64(b.MaxTokens)
		}
	}
	if most > 0 {
		usd = &most
	}
	return usd, tokens
}

// returns reports whether the graph leads from a role back to it.
func returns(w protocol.Workflow, role string) bool {
	seen := map[string]bool{}
	ahead := []string{role}
	for len(ahead) > 0 {
		at := ahead[0]
		ahead = ahead[1:]
		for _, way := range flow.Ways(w, at) {
			if way.Role == role || way.Role == protocol.SuspendNode && at == role { // a person's answer leads back to it
				return true
			}
			if _, isRole := w.Roles[way.Role]; isRole && !seen[way.Role] {
				seen[way.Role] = true
				ahead = append(ahead, way.Role)
			}
		}
	}
	return false
}
