package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
)

func TestTotalsInWords(t *testing.T) {
	t.Parallel()
	cost := 0.0076
	usage := &protocol.Usage{Turns: 3, InputTokens: 1150, OutputTokens: 25, CostUSD: &cost}
	for name, c := range map[string]struct {
		totals       protocol.Totals
		tokens, cost string
	}{
		"no step":                             {protocol.Totals{}, "", ""},
		"all is known":                        {protocol.Totals{Steps: 5, Usage: usage}, "1,150 in, 25 out", "$0.0076"},
		"one is unknown":                      {protocol.Totals{Steps: 5, Usage: usage, StepsWithoutUsage: 1, StepsWithoutCost: 1}, "at least 1,150 in, 25 out; 1 of 5 steps does not say", "at least $0.0076; 1 of 5 steps does not say"},
		"most are unknown":                    {protocol.Totals{Steps: 5, Usage: usage, StepsWithoutUsage: 4, StepsWithoutCost: 4}, "at least 1,150 in, 25 out; 4 of 5 steps do not say", "at least $0.0076; 4 of 5 steps do not say"},
		"nothing is known":                    {protocol.Totals{Steps: 5, StepsWithoutUsage: 5, StepsWithoutCost: 5}, "unknown", "unknown"},
		"replies without a token are unknown": {protocol.Totals{Steps: 1, Usage: &protocol.Usage{Turns: 60}, StepsWithoutUsage: 1, StepsWithoutCost: 1}, "unknown", "unknown"},
	} {
		require.Equal(t, c.tokens, view.Tokens(c.totals), name)
		require.Equal(t, c.cost, view.Cost(c.totals), name)
	}
	require.Equal(t, "?", view.StepTokens(&protocol.Usage{Turns: 60, CostUSD: &cost}))
}
