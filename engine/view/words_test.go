package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestTotalsInWords(t *testing.T) {
	t.Parallel()
	cost := 0.0076
	usage := &protocol.Usage{Turns: 3, InputTokens: 1150, OutputTokens: 25, CostUSD: &cost}
	for name, c := range map[string]struct {
		totals protocol.Totals
	}{
		"no step":                             {protocol.Totals{}},
		"all is known":                        {protocol.Totals{Steps: 5, Usage: usage}},
		"one is unknown":                      {protocol.Totals{Steps: 5, Usage: usage, StepsWithoutUsage: 1, StepsWithoutCost: 1}},
		"most are unknown":                    {protocol.Totals{Steps: 5, Usage: usage, StepsWithoutUsage: 4, StepsWithoutCost: 4}},
		"nothing is known":                    {protocol.Totals{Steps: 5, StepsWithoutUsage: 5, StepsWithoutCost: 5}},
		"replies without a token are unknown": {protocol.Totals{Steps: 1, Usage: &protocol.Usage{Turns: 60}, StepsWithoutUsage: 1, StepsWithoutCost: 1}},
	} {
		prosetest.Text(t, view.Tokens(c.totals), name)
		prosetest.Text(t, view.Cost(c.totals), name)
	}
	require.Equal(t, "?", view.StepTokens(&protocol.Usage{Turns: 60, CostUSD: &cost}))
}
