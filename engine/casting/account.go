package casting

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/limits"
	"github.com/united-workforce/uwf/util/config"
)

// Account is the account that an agent uses: the one that the config names, the provider of its
// model, or its program's own. Agents of one program with other arguments or variables have
// other accounts, since these can choose one.
func (r Caster) Account(ctx context.Context, cmd Command, workflow, role string) limits.Account {
	if cmd.Account != "" {
		return limits.NewAccount(cmd.Account, nil)
	}
	if config.OwnsModels(cmd.Argv[0]) {
		if model, problem := r.modelFor(ctx, cmd, workflow, role); problem == nil {
			provider, _, _ := strings.Cut(model, " ")
			return limits.NewAccount(provider, nil)
		}
	}
	apart := slices.Clone(cmd.Argv[1:])
	for _, key := range slices.Sorted(maps.Keys(cmd.Env)) {
		apart = append(apart, key+"="+cmd.Env[key])
	}
	return limits.NewAccount(config.AccountOf(cmd.Argv[0]), apart)
}
