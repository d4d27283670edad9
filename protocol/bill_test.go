package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestUnknownPartMakesSumUnknown(t *testing.T) {
	t.Parallel()
	usd := func(f float64) *float64 { return &f }
	whole := protocol.Usage{Turns: 1, InputTokens: 10, OutputTokens: 2, CostUSD: usd(0.1)}
	noCost := protocol.Usage{Turns: 1, InputTokens: 10, OutputTokens: 2}
	costOnly := protocol.Usage{Turns: 1, CostUSD: usd(0.2)}
	silent := protocol.Usage{Turns: 1, DurationMs: 5}
	for name, c := range map[string]struct {
		parts []*protocol.Usage
		want  *protocol.Usage
	}{
		"nothing happened":    {nil, nil},
		"all is known":        {[]*protocol.Usage{&whole, &whole}, &protocol.Usage{Turns: 2, InputTokens: 20, OutputTokens: 4, CostUSD: usd(0.2)}},
		"a cost is missing":   {[]*protocol.Usage{&whole, &noCost}, &protocol.Usage{Turns: 2, InputTokens: 20, OutputTokens: 4}},
		"tokens are missing":  {[]*protocol.Usage{&whole, &costOnly}, &protocol.Usage{Turns: 2, CostUSD: usd(0.3)}},
		"a part says nothing": {[]*protocol.Usage{&whole, nil}, nil},
		"zeros say nothing":   {[]*protocol.Usage{&whole, &silent}, nil},
		"no model was asked":  {[]*protocol.Usage{{DurationMs: 5}}, &protocol.Usage{DurationMs: 5}},
		"nor beside one":      {[]*protocol.Usage{&whole, {}}, &whole},
		"exactly":             {[]*protocol.Usage{{Turns: 1, InputTokens: 1, CostUSD: usd(0.1)}, {Turns: 1, InputTokens: 1, CostUSD: usd(0.2)}}, &protocol.Usage{Turns: 2, InputTokens: 2, CostUSD: usd(0.3)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bill protocol.Bill
			for _, p := range c.parts {
				bill.Add(p)
			}
			require.Equal(t, c.want, bill.Usage())
		})
	}
	require.False(t, (*protocol.Usage)(nil).Counted())
	require.False(t, costOnly.Counted())
	require.True(t, whole.Counted())
	require.Nil(t, silent.IfKnown())
}

func TestTotalsSayHowMuchIsMissing(t *testing.T) {
	t.Parallel()
	cost := 0.5
	var sum protocol.Totals
	sum.Add(protocol.Step{Usage: &protocol.Usage{Turns: 2, InputTokens: 7}})
	sum.Add(protocol.Step{Usage: &protocol.Usage{Turns: 60, CostUSD: &cost}})
	sum.Add(protocol.Step{})
	require.Equal(t, 2, sum.StepsWithoutUsage, "no tokens in 60 replies are unknown tokens")
	require.Equal(t, 2, sum.StepsWithoutCost)
	require.EqualValues(t, 7, sum.Usage.InputTokens)
	require.InDelta(t, 0.5, *sum.Usage.CostUSD, 1e-9)

	nothing := 0.0 // the cost of a person's step
	people := protocol.Totals{}
	people.Add(protocol.Step{Usage: &protocol.Usage{CostUSD: &nothing}})
	require.Zero(t, *people.Usage.CostUSD)
	people.Add(protocol.Step{})
	people.Add(protocol.Step{Usage: &protocol.Usage{CostUSD: &nothing}})
	require.Nil(t, people.Usage.CostUSD, "a lower bound of nothing is none")
}

// A step that ended before it began, because the clock was set back, takes no time from the others.
func TestTotalsOfAClockSetBack(t *testing.T) {
	t.Parallel()
	var sum protocol.Totals
	sum.Add(protocol.Step{StartedAtMs: 1000, CompletedAtMs: 5000})
	sum.Add(protocol.Step{StartedAtMs: 9000, CompletedAtMs: 2000})
	require.EqualValues(t, 4000, sum.DurationMs)
}

// A bill, the totals of a thread and the checks of limits agree whether a cost is known.
func TestTheCostIsKnownToAllOrNone(t *testing.T) {
	t.Parallel()
	nothing := 0.0
	for name, u := range map[string]*protocol.Usage{
		"nothing reported": nil, "only a duration": {DurationMs: 5}, "a reply": {Turns: 1}, "cached tokens": {CacheReadTokens: 9},
		"free": {CostUSD: &nothing, Turns: 1}, "output": {OutputTokens: 1},
	} {
		var bill protocol.Bill
		bill.Add(u)
		var step, try protocol.Totals
		step.Add(protocol.Step{Usage: u})
		try.AddPending([]protocol.Try{{Usage: u}})
		want := 1
		if u.IsPriced() {
			want = 0
		}
		require.Equal(t, []int{want, want, want}, []int{bill.Unpriced, step.StepsWithoutCost, try.StepsWithoutCost}, name)
	}
}
