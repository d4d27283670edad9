package cliagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
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

func TestClassify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ErrorKind{
		"No conversation found with session ID: 9":                     SessionNotFound,
		"Error: Session ID 1 is already in use.":                       SessionInUse,
		"Not inside a trusted directory and --skip-…":                  UntrustedDir,
		"API Error: 429 rate_limit_error":                              RateLimit,
		"You exceeded your current quota":                              Quota,
		"You've hit your limit · resets 3am (UTC)":                     Quota,
		"You've hit your 5-hour limit · resets 5am":                    Quota,
		"You have exhausted your daily quota on this model.":           Quota,
		"You've hit your weekly limit":                                 Quota,
		"You've reached your Opus 5.5 weekly limit":                    Quota,
		"overloaded_error: Overloaded":                                 RateLimit,
		"Selected model is at capacity. Please try a different model.": RateLimit,
		"529 {}":                             RateLimit,
		"Not logged in · Please run /login":  Auth,
		"unexpected status 401 Unauthorized": Auth,
		"prompt is too long: 210000 tokens":  Context,
		"error: unknown option '--nope'":     BadUsage,
		"connect ECONNREFUSED 127.0.0.1:1":   Server,
		"503 Service Unavailable":            Server,
		"API Error: 400 invalid":             BadRequest,
		"what a nice day":                    Unknown,

		// of public reports
		"5-hour limit reached ∙ resets 1am":                                                               Quota,
		"Opus weekly limit reached ∙ resets Oct 10, 3pm":                                                  Quota,
		"You're out of extra usage · resets 3pm (UTC)":                                                    Quota,
		"Spending cap reached resets 8pm":                                                                 Quota,
		"You have exceeded the 5-hour usage quota. It will reset at 2026-07-30 16:11:46 +0800 CST.":       Quota,
		"Free usage exceeded, subscribe to Go":                                                            Quota,
		"You have exceeded your premium request allowance.":                                               Quota,
		"Resource has been exhausted (e.g. check quota).":                                                 RateLimit,
		"Resource exhausted. Please try again later. RESOURCE_EXHAUSTED":                                  RateLimit,
		"No capacity available for model gemini-2.5-pro on the server":                                    RateLimit,
		"ThrottlingException: Too many tokens, please wait before trying again.":                          RateLimit,
		"maximum context: too many tokens":                                                                Context,
		"Failed to authenticate: OAuth session expired and could not be refreshed":                        Auth,
		"OAuth token has expired. Please obtain a new token or refresh your existing token.":              Auth,
		"Your access token could not be refreshed because it was used. Please log out and sign in again.": Auth,
		"This organization has been disabled.":                                                            Auth,
		"bash: the time limit was reached":                                                                Unknown,
		"the session expired":                                                                             Unknown,
		"ENOSPC: no space left, memory exhausted":                                                         Unknown,
		"the limit of open files is out of range":                                                         Unknown,
	} {
		require.Equal(t, want, Classify(text), text)
	}
	require.Equal(t, Auth, StatusKind(401))
	require.Equal(t, Quota, StatusKind(402))
	require.Equal(t, RateLimit, StatusKind(429))
	require.Equal(t, RateLimit, StatusKind(529))
	require.Equal(t, BadRequest, StatusKind(404))
	require.Equal(t, Unknown, StatusKind(0))

	require.Equal(t, RateLimit, KindOf(529, "x"))
	require.Equal(t, RateLimit, KindOf(0, "API Error: 529 Overloaded"))
	require.Equal(t, RateLimit, KindOf(503, "The model is overloaded. Please try again later."))
	require.Equal(t, Server, KindOf(500, "Internal server error"))
	require.Equal(t, Context, KindOf(400, "prompt is too long: 210000 tokens"))
	require.Equal(t, Quota, KindOf(429, "You've hit your 5-hour limit"))
	require.Equal(t, RateLimit, KindOf(429, "rate limit"))
	require.Equal(t, Auth, KindOf(401, "429"))
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

// An error of our own side, such as a full disk, is never taken for how a call
// came out: the step would wait for a person as if the program had been unable.
// What one call does not tell is not told as nothing, unless a later one tells it,
// too.
func TestUntoldUsageIsNotZero(t *testing.T) {
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

// Who watches a program that says nothing is told so, less and less often.
func TestSilenceIsShown(t *testing.T) {
	t.Parallel()
	var shown []string
	w := waits{now: time.Now, show: func(text string) { shown = append(shown, text) }}
	w.listen(func() {})
	defer w.close()
	w.silent("toy", false)
	w.silent("toy", true) // a tool is shown already
	w.silent("toy", false)
	w.word()
	w.word()
	w.silent("toy", false)
	prosetest.Text(t, shown)
}

// The limit that is named is the one that applied: what a person adds to the arguments
// replaces the one that was set.
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
