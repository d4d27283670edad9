package casting

import (
	"cmp"
	"context"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Unpriced says why a limit of cost cannot hold an agent, "" if it may. Where no limit
// of tokens can hold it either, it is refused before it begins.
func (r Caster) Unpriced(ctx context.Context, l protocol.Limits, cmd Command, workflow, role string) (string, error) {
	if l.MaxCostUSD == 0 {
		return "", nil
	}
	c, err := r.Config(ctx)
	if err != nil {
		return "", err
	}
	why, alias := config.NoPrice(c, cmd.Argv[0], modelFlag(cmd.Argv), cmd.Alias, workflow, role, r.Env)
	if why == "" || l.MaxTokens > 0 {
		return why, nil
	}
	refusal := fault.New(protocol.CodeInvalid, "the run may cost %s (maxCostUsd), but the cost of role %q cannot be tracked: %s, and there is no token limit", protocol.Dollars(l.MaxCostUSD), role, why)
	key := "models." + plaintext.Word(cmp.Or(alias, "<alias>")) + ".price"
	return "", fault.Hinted(refusal, "uwf config set "+key+".input 3; uwf config set "+key+".output 15: dollars per million tokens, those of your model", "--max-tokens 2000000 bounds the run by tokens instead")
}
