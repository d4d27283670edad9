package casting

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/limits"
	"github.com/united-workforce/uwf/engine/retry"
	"github.com/united-workforce/uwf/protocol"
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

// Held reports whether all agents that can play a role must not start, since their accounts are
// limited or the day's limit is used up, and returns the limit that is reset first. It only reads:
// what is wrong with the config, whoever plays the role reports.
func (r Caster) Held(
	ctx context.Context, accounts limits.Accounts, o Wish, workflow, role string,
) (first limits.Limit, held bool) {
	c, err := r.Config(ctx)
	if err != nil || accounts.None() {
		return limits.Limit{}, false
	}
	if l := accounts.Today(c.Limits).UsedUp(); l != (limits.Limit{}) {
		return l, true
	}
	cmd, err := r.Agent(ctx, o, workflow, role)
	p := retry.Of(c, cmd.Alias)
	for next := p.Fallback; err == nil; next = next[1:] {
		l, held := accounts.Held(r.Account(ctx, cmd, workflow, role), retry.Of(c, cmd.Alias))
		if !held {
			break
		}
		if first = first.Sooner(l); len(next) == 0 || !p.FallsBack(protocol.FailedRateLimit) {
			return first, true
		}
		cmd, err = r.Fallback(c, next[0], o)
	}
	return limits.Limit{}, false
}
