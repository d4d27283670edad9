package cliagent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func TestAStep(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "model: big\npermission: edits\nmaxTurns: 7", "OUTER_SESSION=1", "TOY_API_KEY=secret-0123456789").plays(
		"S {session}\nT I look.\nC 1 read\nR 1 a file with secret-0123456789\nN take care\nB from a helper\n" + good + "\nU 100 0.5\n.")
	got := b.step().Succeeded()
	call := b.heard(1)[0]
	require.Equal(t, []string{"--permission", "edits", "--model", "big", "--max", "7", "--session"}, call.Args[:7])
	require.Equal(t, last(call.Args), got.Step.SessionID)
	require.Contains(t, call.Prompt, "the instruction")
	require.Contains(t, call.Env, "TOY=1")
	require.NotContains(t, call.Env, "OUTER_SESSION=1")
	require.Equal(t, map[string]any{"$status": "done"}, got.Output)
	require.Equal(t, "---\n$status: done\n---\nIt is done.", got.Content)

	require.Equal(t, protocol.CaptureTurns, got.Detail.Capture)
	require.Equal(t, "toy-1", got.Detail.Model)
	require.Equal(t, "toy 1.2.3", got.Detail.AgentVersion)
	prosetest.Text(t, got.Detail.Outcome)
	prosetest.Text(t, texts(got.Turns))
	require.EqualValues(t, 100, got.Step.Usage.InputTokens)
	require.InDelta(t, 0.5, *got.Step.Usage.CostUSD, 1e-9)
	require.Equal(t, 2, got.Step.Usage.Turns)

	kept, err := os.ReadFile(filepath.Join(b.RunDir, "program.stdout"))
	require.NoError(t, err)
	prosetest.Text(t, string(kept), "both streams are kept, without keys")
}

func texts(turns []protocol.Turn) []string {
	var all []string
	for _, turn := range turns {
		text := string(turn.Role) + ": " + turn.Content
		for _, call := range turn.ToolCalls {
			text += fmt.Sprintf(" [%s %v]", call.Name, call.Args)
		}
		all = append(all, text)
	}
	return all
}

// The exit status is not the outcome; the program's own result is.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		plays           []string
		suspends, fails bool
		calls           int
		detail          string // substring of the outcome
	}{
		"a word after the answer": {plays: []string{"S {session}\n" + good + "\nT That was it.\n."}, calls: 1, detail: "ok"},
		"in pieces":               {plays: []string{"S {session}\nD ---\\n$status: \nD done\\n---\\nIt is\nD  done.\n."}, calls: 1},
		"exit status 3":           {plays: []string{"S {session}\n" + good + "\n.\n!exit 3"}, calls: 1},
		"no last word, but an answer": {
			plays: []string{"S {session}\n" + good}, calls: 1, detail: "incomplete",
		},
		"incomplete": {
			plays: []string{"S {session}\nT I begin.\nC 1 read\nR 1 x", "S {session}\n" + good + "\n."}, calls: 2, detail: "asked to finish",
		},
		"incomplete twice": {
			plays: []string{"S {session}\nT I begin.", "S {session}\nT Hm."}, calls: 2, suspends: true,
		},
		"a part of an answer": {
			plays: []string{"S {session}\nT ---\\n$status: done\\n---\\nIt\nQ 1\nX incomplete a", "S {session}\n" + good + "\n."}, calls: 2, detail: "asked to finish",
		},
		"a part of an answer twice": {
			plays: []string{"S {session}\nT I begin.", "S {session}\n" + good + "\nQ 1\nX incomplete a"}, calls: 2, suspends: true,
		},
		"the limit of turns": {plays: []string{"S {session}\nT I begin.\nX max_turns"}, calls: 1, suspends: true},
		"the limit of cost":  {plays: []string{"S {session}\nT I begin.\nX max_cost"}, calls: 1, suspends: true, detail: "max_cost"},
		"a limit without a session": {
			plays: []string{"X max_turns"}, calls: 1, fails: true,
		},
		"a rate limit at once": {plays: []string{"X error rate_limit a"}, calls: 1, fails: true},
		"a rate limit at work": {
			plays: []string{"S {session}\nT I begin.\nX error rate_limit later."}, calls: 1,
			suspends: true,
		},
		"a quota that is used up": {
			plays: []string{"S {session}\nT I begin.\nX error quota add money"}, calls: 1,
			suspends: true,
		},
		"no quota from the start": {plays: []string{"X error quota add money"}, calls: 1, fails: true},
		"not logged in":           {plays: []string{"X error auth no key"}, calls: 1, fails: true},
		"retries in vain":         {plays: []string{"S {session}\nV the key is refused\n!hang"}, calls: 1, fails: true},
		"a crash at once":         {plays: []string{"!stderr boom\n!exit 9"}, calls: 1, fails: true},
		"a crash at work":         {plays: []string{"S {session}\nT I begin.\n!stderr boom\n!exit 9"}, calls: 1, fails: true},
		"another format":          {plays: []string{"who are you"}, calls: 1, fails: true},
		"the model declines":      {plays: []string{"S {session}\nT No.\nX refusal I will not"}, calls: 1, fails: true},
		"an answer without a session": {
			plays: []string{"!stderr where is it\n" + good + "\n."}, calls: 1, fails: true,
		},
		"and what it said on stderr": {
			plays: []string{"!stderr where is it\n" + good + "\n."}, calls: 1, fails: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := set(t, toy(), "").plays(tt.plays...)
			got := b.step()
			b.heard(tt.calls)
			if tt.fails {
				prosetest.Text(t, got.Failed().ErrorText())
				return
			}
			got.Succeeded()
			require.Contains(t, got.Detail.Outcome, tt.detail)
			if tt.suspends {
				prosetest.Text(t, got.Suspended)
				return
			}
			require.Empty(t, got.Suspended)
			require.Equal(t, "---\n$status: done\n---\nIt is done.", got.Content)
		})
	}
}

// A suspension promises to continue a session only if there is one.
func TestNoResumeHintWithoutSession(t *testing.T) {
	t.Parallel()
	const failing = "S {session}\nT I begin.\nX error server a"
	for config, goesOn := range map[string]bool{"": true, "resume: false": false} {
		b := set(t, toy(), config).plays(failing, failing, failing)
		got := b.step()
		prosetest.Text(t, got.Result.Hints, "goes on: %v", goesOn)
	}
	limited := set(t, toy(), "resume: false").plays("S {session}\nT I begin.\nU 100 1\nX max_turns").step().Succeeded()
	prosetest.Text(t, limited.Suspended)
	b := set(t, toy(), "").plays("X error rate_limit a", "X error rate_limit b", "X error rate_limit c")
	prosetest.Text(t, b.step().Result.Error, "there is none")
}

// A run's limit is raised, not answered.
func TestTheBudgetOfTheRun(t *testing.T) {
	t.Parallel()
	got := set(t, toy(), "", protocol.EnvBudget+`={"costUsd": 0.02}`).plays("S {session}\nT I begin.\nX max_cost").step().Succeeded()
	outcome, ofRun := got.Detail.UsedUp()
	require.True(t, ofRun)
	require.Equal(t, protocol.OutcomeMaxCost, outcome)
	prosetest.Text(t, got.Suspended)
}

// A thread suspended by a limit continues in its session.
func TestALimitLosesNothing(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "").plays("S {session}\nT I begin.\nU 100 1\nX max_turns", "S {session}\n"+good+"\nU 150 1.5\n.")
	suspended := b.step().Succeeded()
	require.NotEmpty(t, suspended.Suspended)
	got := b.step().Succeeded()
	calls := b.heard(2)
	require.Equal(t, []string{"--resume", suspended.Step.SessionID}, calls[1].Args[len(calls[1].Args)-2:])
	require.EqualValues(t, 50, got.Step.Usage.InputTokens, "usage is of the run, not of the session")
	require.InDelta(t, 0.5, *got.Step.Usage.CostUSD, 1e-9)
}

// A program without a turn limit is stopped and asked for its answer.
func TestCountedTurns(t *testing.T) {
	t.Parallel()
	a := toy()
	a.CountsTurns = true
	b := set(t, a, "maxTurns: 2").plays(
		"S {session}\nT one\nC 1 x\nR 1 x\nT two\nC 2 x\nR 2 x\n!hang", "S {session}\n"+good+"\n.")
	got := b.step().Succeeded()
	prosetest.Text(t, got.Detail.Outcome)
	prosetest.Text(t, b.heard(2)[1].Prompt)
}

// Parallel calls belong to one reply, even without message IDs.
func TestParallelCallsAreOneReply(t *testing.T) {
	t.Parallel()
	got := set(t, toy(), "").plays("S {session}\nC 1 x\nC 2 x\nR 1 x\nC 3 x\nR 2 x\nR 3 x\nC 4 x\nR 4 x\n" + good + "\nU 100 1\n.").step().Succeeded()
	require.Equal(t, 3, got.Step.Usage.Turns)
}

func TestTimeLimits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config string
		play   string
		fails  bool
	}{
		"no first word":       {config: "startTimeout: 1s", play: "!hang", fails: true},
		"silence":             {config: "idleTimeout: 1s", play: "S {session}\nT I begin.\n!hang"},
		"a silent tool":       {config: "idleTimeout: 1s", play: "S {session}\nC 1 x\n!hang"},
		"too long as such":    {config: "timeout: 4s", play: "S {session}\nT I begin.\n!hang"},
		"deaf to all of it":   {config: "idleTimeout: 1s", play: "!deaf\nS {session}\nT I begin.\n!hang"},
		"silent when it ends": {play: "S {session}\n" + good + "\n.\n!hang"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := toy()
			a.Timeouts.Start = 30 * time.Second
			b := set(t, a, tt.config).plays(tt.play)
			got := b.step()
			if tt.fails {
				prosetest.Text(t, got.Failed().ErrorText())
				return
			}
			prosetest.Text(t, got.Succeeded().Suspended)
		})
	}
}

// If a program does not report its model, the detail contains the configured one.
func TestTheConfiguredModelIsInTheDetail(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "model: big").plays(good+"\n.", "S {session}\n"+good+"\n.")
	b.adapter.Sessions.Optional, b.adapter.Sessions.Preset = true, false
	require.Equal(t, "big", b.step().Succeeded().Detail.Model)
	require.Equal(t, "toy-1", b.step().Succeeded().Detail.Model)
}

func TestNotInstalled(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "", "UWF_TOY_BIN=", "PATH=/nowhere")
	prosetest.Text(t, b.step().Failed().ErrorText())
	b = set(t, toy(), "", "UWF_TOY_BIN=/nowhere/toy")
	prosetest.Text(t, b.step().Failed().ErrorText())
	a := toy()
	a.Probe.Min = cliagent.V(1, 3, 0)
	prosetest.Text(t, set(t, a, "").step().Failed().ErrorText())
	a.Probe = cliagent.Probe{Flaws: []cliagent.Flaw{{Before: cliagent.V(1, 3, 0), Text: "it squeaks"}, {From: cliagent.V(1, 3, 0), Text: "never"}}}
	got := set(t, a, "sandbox: { mode: none }").plays("S {session}\n" + good + "\n.").step().Succeeded()
	require.Equal(t, "warning: toy 1.2.3: it squeaks\n", got.Stderr)
}

// The adapter of these tests cannot start itself again, so nothing can be confined; internal/agentstest
// confines real programs.
func TestNotConfined(t *testing.T) {
	t.Parallel()
	good := "S {session}\n" + good + "\n."
	prosetest.Text(t, set(t, toy(), "sandbox: { mode: required }").plays(good).step().Failed().ErrorText())
	prosetest.Text(t, set(t, toy(), "sandbox: { mode: landlock }").plays(good).step().Failed().ErrorText())
	prosetest.Text(t, set(t, toy(), "").plays(good).step().Succeeded().Stderr)
	require.Empty(t, set(t, toy(), "sandbox: { mode: none }").plays(good).step().Succeeded().Stderr)
	prosetest.Text(t, set(t, toy(), "permission: read-only").plays(good).step().Succeeded().Stderr, "a clone's settings ask nobody")
}

// If a limit is reached after the model has begun, the thread is suspended at the last try, even if that is
// rejected at once. Before the first reply, the step fails.
func TestLimitDuringWork(t *testing.T) {
	t.Parallel()
	const refused = "S {session}\nX error rate_limit slow down"
	const begun = "S {session}\nT I begin.\nX error server 503"
	for _, again := range []string{refused, "X error quota You've hit your weekly limit"} {
		b := set(t, toy(), "").plays(begun, again)
		b.step().Failed("server 503")
		got := b.step().Succeeded()
		b.heard(2)
		prosetest.Text(t, got.Suspended)
		require.NotEmpty(t, got.Step.SessionID)
	}
	require.Equal(t, protocol.FailedRateLimit, set(t, toy(), "").plays(refused).step().Failed("rate limit").Result.Kind)
}

// A truncated answer is marked as such.
func TestALongAnswerIsCut(t *testing.T) {
	t.Parallel()
	long := strings.Replace(good, "It is done.", strings.Repeat("many words ", 120_000), 1)
	got := set(t, toy(), "sandbox: { mode: none }").plays("S {session}\n" + long + "\n.").step().Succeeded()
	prosetest.Text(t, got.Stderr)
	prosetest.Text(t, got.Content)
	require.Less(t, len(got.Content), 2<<20)
}

// The result of a rejected run contains the time at which the limit resets.
func TestTheResultNamesTheReset(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "").plays("X error rate_limit slow down, try again in 2 hours")
	got := b.step().Failed("try again in 2 hours")
	b.heard(1)
	require.Equal(t, protocol.FailedRateLimit, got.Result.Kind)
	require.WithinDuration(t, time.Now().Add(2*time.Hour), time.UnixMilli(got.Result.RetryAtMs), time.Minute)
}

// Retries are no sign of life: the step ends in time with the reason and is not retried. Live views show the
// retries.
func TestAStuckProvider(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ play string }{
		"no network":     {"!ever Y 0"},
		"after its work": {"S {session}\nT I begin.\nC 1 x\nR 1 x\n!ever Y 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := toy()
			a.Timeouts.Retrying = time.Second
			b := set(t, a, "").plays(c.play)
			got := b.step().Failed()
			prosetest.Text(t, got.ErrorText())
			b.heard(1)
			require.NotEmpty(t, b.written(got), "how often it has asked differs, and whether the last word is seen")
		})
	}
	a := toy()
	a.Timeouts.Retrying = time.Minute
	b := set(t, a, "").plays("S {session}\nY 429\nY 429\n" + good + "\n.")
	got := b.step().Succeeded()
	require.Len(t, got.Turns, 1, "it is no part of the step")
	prosetest.Text(t, b.written(got))
}

// A program that reports tokens but no cost is charged with the price in the config.
func TestThePriceOfTheConfig(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "model: big\n"+"args: []").plays("S {session}\nK 1000000 500000\n" + good + "\n.")
	b.configure("models: { big: { provider: p, name: the-big-one, price: { input: 2, output: 8 } } }\nproviders: { p: { baseUrl: https://x.example } }\n")
	got := b.step().Succeeded()
	require.Contains(t, b.heard(1)[0].Args, "the-big-one")
	require.InDelta(t, 6.0, *got.Step.Usage.CostUSD, 1e-9)
}

// Some programs end their turn after a refusal. The role is asked to continue, not to reformat its answer.
func TestARefusalIsNoEnd(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "").plays("S {session}\nZ shell: go test\nT Operation cancelled by user\n.", "S {session}\nZ shell: go vet\nT Cancelled.\n.", "S {session}\nZ x\n"+good+"\n.")
	got := b.step().Succeeded()
	calls := b.heard(3)
	prosetest.Text(t, calls[1].Prompt)
	require.Contains(t, calls[2].Prompt, "go vet")
	prosetest.Text(t, got.Detail.Outcome)

	always := "S {session}\nZ shell\nT Cancelled.\n."
	b = set(t, toy(), "").plays(always, always, always, always, "S {session}\n"+good+"\n.")
	b.step().Succeeded()
	require.Contains(t, b.heard(5)[4].Prompt, "frontmatter", "then it is the form that is asked for")
}

// A rate limit that the engine handles fails the run. A limit that only time or money lifts suspends it, and
// the result reports the limit.
func TestALimitAtWork(t *testing.T) {
	t.Parallel()
	const begun = "S {session}\nT I begin.\nX error "
	for name, c := range map[string]struct {
		play, retries string
		suspends      bool
	}{
		"it passes, and the engine tries again": {"rate_limit slow down", "2", false},
		"it passes, and this was the last try":  {"rate_limit slow down", "0", true},
		"it is reset in two hours":              {"rate_limit try again in 2 hours", "2", true},
		"no money is left":                      {"quota add money", "2", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := set(t, toy(), "", "UWF_RETRIES="+c.retries).plays(begun + c.play)
			got := b.step()
			b.heard(1)
			require.Equal(t, protocol.FailedRateLimit, got.Result.Kind)
			require.Equal(t, c.suspends, got.Result.StepHash != "")
			require.Equal(t, strings.Contains(c.play, "hours"), got.Result.RetryAtMs != 0)
		})
	}
}
