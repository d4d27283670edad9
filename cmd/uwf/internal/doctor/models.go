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
	for _, alias := range slices.Sorted(maps.Keys(x.config.Models)) {
		e, err := config.ResolveModel(*x.config, alias, x.Env)
		if err != nil {
			x.warn("models", remedy(err, "correct "+x.Dirs.Config()), "%s: %v", alias, err)
			continue
		}
		if x.Ask == nil {
			x.ok("models", "%s: %s at %s", alias, e.Model, e.BaseURL)
			continue
		}
		if err := x.Ask(ctx, e); err != nil {
			x.warn("models", remedy(err, "correct models."+alias+" in "+x.Dirs.Config()), "%s does not answer: %v", alias, err)
			continue
		}
		x.ok("models", "%s: %s at %s answers", alias, e.Model, e.BaseURL)
	}
}
