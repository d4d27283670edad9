package cliagenttest

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// Run tests an adapter with each recorded run, and with a whole step for each fault.
func Run(t *testing.T, a cliagent.Adapter, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run("recorded/"+c.Name, func(t *testing.T) {
			t.Parallel()
			c.check(t, a)
		})
	}
	good := firstGood(cases)
	require.NotEmpty(t, good, "one recorded run must be a first one that ends well, with a frontmatter")
	for _, c := range good {
		t.Run("past/"+c.Name, func(t *testing.T) {
			t.Parallel()
			c.checkPast(t, a)
		})
		for _, f := range faults {
			if f.lines && c.Plain {
				continue // plain text has no unknown lines
			}
			t.Run("fault/"+f.name+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				f.check(t, a, c)
			})
		}
	}
}

// firstGood returns the runs with which faults are tested: one per format.
func firstGood(cases []Case) []Case {
	var good []Case
	for _, c := range cases {
		ended := c.Expect.Outcome == string(cliagent.OK) && c.Expect.Final != nil && strings.HasPrefix(*c.Expect.Final, "---")
		same := func(other Case) bool { return other.Plain == c.Plain }
		if ended && !c.call().Resume && !slices.ContainsFunc(good, same) {
			good = append(good, c)
		}
	}
	return good
}

// check compares the adapter's interpretation of a run with the expected one.
func (c Case) check(t *testing.T, a cliagent.Adapter) {
	seen, err := cliagent.Replay(t.Context(), a, c.call(), bytes.NewReader(c.Stdout), c.exit())
	require.NoError(t, err)
	c.checkOutcome(t, seen)
	want := c.Expect
	if want.Session != nil {
		require.Equal(t, *want.Session, seen.Session)
	}
	if want.Final != nil {
		require.Equal(t, *want.Final, seen.Answer)
	}
	if want.Turns != nil {
		require.Equal(t, *want.Turns, seen.Worked)
	}
	if want.ToolCalls != nil {
		require.Equal(t, *want.ToolCalls, calls(seen.Turns))
	}
	if want.Value != nil {
		require.Equal(t, want.Value, seen.Value)
	}
	c.checkUsage(t, seen.Usage)
}

func (c Case) checkOutcome(t *testing.T, seen cliagent.Seen) {
	want := c.Expect
	if want.Outcome == "killed" || want.Outcome == "timeout" {
		require.NotEqual(t, cliagent.OK, seen.Kind) // only the runner knows which of them
		return
	}
	if want.Error == errorkind.SessionNotFound && seen.Kind == cliagent.SessionLost {
		return // known from another ID already
	}
	require.Equal(t, want.Outcome, string(seen.Kind), "%+v", seen.Outcome)
	if want.Error != "" {
		require.Equal(t, want.Error, seen.Error, seen.Message)
	}
	require.Contains(t, seen.Message, want.Message)
}

func (c Case) checkUsage(t *testing.T, got cliagent.Usage) {
	want := c.Expect.Usage
	if c.Expect.Totals != nil {
		want = c.Expect.Totals
		require.True(t, got.TokensOfSession, "the figures are of the whole session")
	}
	if want != nil {
		require.NotNil(t, got.Usage)
		require.Equal(t, [4]int64{want.Input, want.Output, want.CacheRead, want.CacheWrite},
			[4]int64{got.InputTokens, got.OutputTokens, got.CacheReadTokens, got.CacheWriteTokens}, "input, output, cache read, cache write")
		if want.Reasoning != nil {
			require.Equal(t, *want.Reasoning, got.ReasoningTokens)
		}
	}
	cost := c.Expect.Cost
	if c.Expect.CostDelta != nil && !got.CostOfSession {
		cost = c.Expect.CostDelta
	}
	if cost != nil {
		require.NotNil(t, got.Usage)
		require.NotNil(t, got.CostUSD)
		require.Less(t, math.Abs(*cost-*got.CostUSD), 1e-9, "cost: want %v, got %v", *cost, *got.CostUSD)
	}
}

func calls(turns []protocol.Turn) int {
	n := 0
	for _, turn := range turns {
		n += len(turn.ToolCalls)
	}
	return n
}
