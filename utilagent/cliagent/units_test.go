package cliagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/secret"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	const id = "01JGWXYZ00000000000000ABCD"
	words := strings.Fields
	for line, want := range map[string][3]string{
		"{id} role":                                               {"", "", "{id} role"},
		"--effort high {id} role":                                 {"--effort high", "", "{id} role"},
		"-- --prompt x {id} role --prompt-ref H":                  {"", "--prompt x", "{id} role --prompt-ref H"},
		"--own -- cmd --thread {id} role":                         {"--own", "cmd --thread", "{id} role"},
		"-- cmd --thread {id} --role r --prompt=go --format json": {"", "cmd", "--thread {id} --role r --prompt=go --format json"},
		"--effort high":                                           {"--effort high", "", ""},
		"-- cmd {id}":                                             {"", "cmd {id}", ""},
	} {
		before, behind, engines := split(words(strings.ReplaceAll(line, "{id}", id)))
		for i, got := range [][]string{before, behind, engines} {
			require.Equal(t, strings.ReplaceAll(want[i], "{id}", id), strings.Join(got, " "), "%s: part %d", line, i)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Version{
		"2.1.329 (Claude Code)":  {2, 1, 329, "2.1.329"},
		"codex-cli 0.169.0":      {0, 169, 0, "0.169.0"},
		"2025.11.06-8fe8a63":     {2025, 11, 6, "2025.11.06-8fe8a63"},
		"Hermes Agent v0.21 (x)": {0, 21, 0, "0.21"},
		"no version":             {},
		"":                       {},
	} {
		require.Equal(t, want, ParseVersion(text), text)
	}
	require.True(t, V(2, 0, 0).AtLeast(V(1, 9, 9)))
	require.True(t, V(1, 9, 9).Before(V(2, 0, 0)))
	require.False(t, Version{}.AtLeast(V(1, 0, 0)), "what is not known is not")
	require.False(t, Version{}.Before(V(1, 0, 0)))
	require.Equal(t, "2.0.30", V(2, 0, 30).String())
}

func TestUsageSince(t *testing.T) {
	t.Parallel()
	cost := func(f float64) *float64 { return &f }
	before := protocol.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: cost(1)}
	tests := map[string]struct {
		told        Usage
		run, totals protocol.Usage
	}{
		"nothing": {Usage{}, protocol.Usage{}, before},
		"of the run": {
			Usage{Usage: &protocol.Usage{InputTokens: 30, CostUSD: cost(0.1)}},
			protocol.Usage{InputTokens: 30, CostUSD: cost(0.1)}, before,
		},
		"of the session": {
			Usage{Usage: &protocol.Usage{InputTokens: 130, OutputTokens: 15, CostUSD: cost(1.25)}, TokensOfSession: true, CostOfSession: true},
			protocol.Usage{InputTokens: 30, OutputTokens: 5, CostUSD: cost(0.25)},
			protocol.Usage{InputTokens: 130, OutputTokens: 15, CostUSD: cost(1.25)},
		},
		"only the cost is of the session": {
			Usage{Usage: &protocol.Usage{InputTokens: 30, CostUSD: cost(1.25)}, CostOfSession: true},
			protocol.Usage{InputTokens: 30, CostUSD: cost(0.25)},
			protocol.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: cost(1.25)},
		},
		"it counts anew": {
			Usage{Usage: &protocol.Usage{InputTokens: 30, OutputTokens: 50, CostUSD: cost(0.5)}, TokensOfSession: true, CostOfSession: true},
			protocol.Usage{InputTokens: 30, OutputTokens: 50, CostUSD: cost(0.5)},
			protocol.Usage{InputTokens: 30, OutputTokens: 50, CostUSD: cost(0.5)},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, totals := tt.told.Since(before)
			require.Equal(t, tt.run, run)
			require.Equal(t, tt.totals, totals)
		})
	}
}

func TestLogHidesSecretsInPieces(t *testing.T) {
	t.Parallel()
	var kept closer
	f := &logFile{file: &kept, w: secret.NewSet("secret-value", "short").NewWriter(&kept)}
	for _, piece := range []string{"a sec", "ret-va", "lue b\nshort secret-", "value"} {
		_, err := f.Write([]byte(piece))
		require.NoError(t, err)
	}
	require.NoError(t, f.close())
	require.Equal(t, "a [hidden key] b\nshort [hidden key]", kept.String())
}

type closer struct{ bytes.Buffer }

func (*closer) Close() error { return nil }

// Unreported usage is not zero, unless a later call reports it. Errors on uwf's side, such as a full disk,
// are never taken for the outcome of a call.
func TestUnreportedUsageIsNotZero(t *testing.T) {
	t.Parallel()
	told := tried{Outcome: Outcome{Usage: Usage{Usage: &protocol.Usage{}}}, usage: protocol.Usage{Turns: 1, InputTokens: 50, DurationMs: 3}, worked: true}
	silent := tried{worked: true, usage: protocol.Usage{DurationMs: 4}}
	refused := tried{}
	catchesUp := told
	catchesUp.Usage.TokensOfSession, catchesUp.task.session = true, "s"
	for name, c := range map[string]struct {
		calls []tried
		want  *protocol.Usage
	}{
		"nothing is told":                      {[]tried{silent}, nil},
		"a call that worked does not tell":     {[]tried{silent, told}, nil},
		"nor does the last one":                {[]tried{told, silent}, nil},
		"one that never began costs nothing":   {[]tried{refused, told}, &protocol.Usage{Turns: 1, InputTokens: 50, DurationMs: 3}},
		"a count over the session has it, too": {[]tried{silent, catchesUp}, &protocol.Usage{Turns: 1, InputTokens: 50, DurationMs: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s spent
			for _, call := range c.calls {
				s.add(call)
			}
			require.Equal(t, c.want, s.usage())
		})
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	for _, end := range []error{
		&changedError{}, &vainError{}, &expired{}, errTurns, errGrace, fmt.Errorf("wrapped: %w", errTurns),
	} {
		require.True(t, isEnd(end), "%v", end)
	}
	for _, ours := range []error{errors.New("turn: no space left on device"), context.Canceled} {
		require.False(t, isEnd(ours), "%v", ours)
	}
}

// The reported limit is the one that applied: the user's own arguments replace the configured one.
func TestLimitText(t *testing.T) {
	t.Parallel()
	r := &runner{adapter: Adapter{Program: "toy"}, settings: settings{maxTurns: 90, maxCost: 0.5}}
	for want, out := range map[string]Outcome{
		"toy stopped at its limit of turns: Reached maximum number of turns (2).": {Kind: MaxTurns, Message: "Reached maximum number of turns (2)"},
		"toy stopped at its limit of cost: Reached maximum budget ($0.003).":      {Kind: Budget, Message: "Reached maximum budget ($0.003)."},
	} {
		require.Equal(t, want, r.limitText(tried{Outcome: out}))
	}
}
