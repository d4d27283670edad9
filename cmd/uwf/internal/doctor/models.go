package doctor

import (
	"context"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/util/config"
)

// models looks up each model's endpoint and key, and asks it if that is wanted.
func (x *examination) models(ctx context.Context) {
	if x.config == nil {
		return
	}
	needed := x.neededModel()
	if needed != "" && x.config.Models[needed].Name == "" || needed == "" && x.asksModel() && !slices.Contains(x.config.Agents[x.config.DefaultAgent].Args, "--model") {
		x.problem("models", "uwf setup", "%s asks a model, and none is configured for it", x.config.DefaultAgent)
	}
	for _, alias := range slices.Sorted(maps.Keys(x.config.Models)) {
		report := x.warn
		if alias == needed {
			report = x.problem
		}
		e, err := config.ResolveModel(*x.config, alias, x.Env)
		if err != nil {
			report("models", remedy(err, "correct "+x.Dirs.Config()), "%s: %v", alias, err)
			continue
		}
		if x.Ask == nil {
			x.ok("models", "%s: %s at %s", alias, e.Model, e.BaseURL)
			continue
		}
		if err := x.Ask(ctx, e); err != nil {
			report("models", remedy(err, "correct models."+alias+" in "+x.Dirs.Config()), "%s does not answer: %v", alias, err)
			continue
		}
		x.ok("models", "%s: %s at %s answers", alias, e.Model, e.BaseURL)
	}
}

// asksModel reports whether the default agent asks a model of the config.
func (x *examination) asksModel() bool {
	return x.config.DefaultAgent != "" && config.OwnsModels(x.config.Agents[x.config.DefaultAgent].Command)
}

// neededModel is the alias of the model without which the default agent plays no role;
// "" if it needs none, or has none.
func (x *examination) neededModel() string {
	if !x.asksModel() || slices.Contains(x.config.Agents[x.config.DefaultAgent].Args, "--model") {
		return ""
	}
	return config.AgentModel(*x.config, x.config.DefaultAgent, "", "")
}
