//go:build unix

package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/limits"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

// retries lets the fake agent be retried without a delay.
func (w *world) retries(change func(*protocol.Agent)) {
	a := w.config.Agents["fake"]
	a.Retry = &protocol.Retry{Backoff: "1ms"}
	change(&a)
	w.config.Agents["fake"] = a
}

func (w *world) clock(ahead *time.Duration) {
	w.Reader.Env.Now = func() time.Time { return time.Now().Add(*ahead) }
}

func TestAProviderThatSaysNoIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!limited:server/0/2/ready")
	w.retries(func(*protocol.Agent) {})
	var said []string
	w.onWarning(func(text string) { said = append(said, text) })
	id := w.start()
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, 3, w.agentRuns())
	step := w.readStep(protocol.Hash(out.StepHash))
	require.Len(t, step.Tries, 2)
	require.Equal(t, "no more for now", step.Tries[0].Error)
	require.Equal(t, "fake", step.Tries[0].Agent)
	require.Contains(t, said[0], `attempt 2 of 3 in 1ms`)
	sum, err := w.Reader.Totals(context.Background(), id, w.head(id))
	require.NoError(t, err)
	require.InDelta(t, 0.6, *sum.Usage.CostUSD, 1e-9, "what failed was paid for")
	keys := map[string]bool{}
	for _, line := range w.runs() {
		if key, ok := strings.CutPrefix(line, "visit "); ok {
			require.Len(t, key, 26)
			keys[key] = true
		}
	}
	require.Len(t, keys, 1, "all tries are of one visit")

	// A failure is reported once, not by the next step as well.
	w.plays("done")
	next := w.mustStep(id, StepOptions{})
	require.Empty(t, w.readStep(protocol.Hash(next.StepHash)).Tries)
}

// The retries of the agent's program count as runs, so that the two numbers don't multiply.
func TestRepetitionsCountAsRuns(t *testing.T) {
	t.Parallel()
	for repeated, runs := range map[string]int{"0": 3, "1": 2, "2": 1, "9": 1} {
		for _, kind := range []string{"server/0", "rate-limit/1"} {
			w := newWorld(t, "!limited:"+kind+"/100/ready/"+repeated)
			w.retries(func(*protocol.Agent) {})
			_, err := w.Step(context.Background(), w.start(), StepOptions{})
			requireCode(t, err, protocol.CodeAgent)
			require.Equal(t, runs, w.agentRuns(), "%s %s", kind, repeated)
		}
	}
}

// The cost of a failed try counts, whatever follows: a budget ends the tries.
func TestFailedTriesCount(t *testing.T) {
	t.Parallel()
	w := newBoundedWorld(t, "!limited:server/0/100/ready", protocol.Limits{MaxCostUSD: 0.2})
	w.retries(func(a *protocol.Agent) { a.Retry.Attempts = 50 })
	id := w.start()
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	require.Equal(t, 2, w.agentRuns())
	require.InDelta(t, 0.2, w.spent(id).CostUSD, 1e-9)
	require.Equal(t, protocol.CodeLimit, w.mustStep(id, StepOptions{}).Error.Code)
	_, err = w.Grant(context.Background(), id, protocol.Limits{}, budget.More{Amount: protocol.Amount{CostUSD: 1}})
	require.NoError(t, err)
	w.plays("ready")
	out := w.mustStep(id, StepOptions{})
	require.Len(t, w.readStep(protocol.Hash(out.StepHash)).Tries, 2, "another agent's step holds them, too")
}

// A thread waits for the reset of a limit without a process.
func TestALimitIsWaitedForWithoutAProcess(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var ahead time.Duration
	w := newWorld(t, "!limited:rate-limit/7200000/1/ready")
	w.clock(&ahead)
	w.retries(func(a *protocol.Agent) { a.OnRateLimit = protocol.LimitWait })
	id := w.start()
	out := w.untilEnd(id)
	require.Equal(t, protocol.StatusRateLimited, out.Status)
	require.InDelta(t, time.Now().Add(2*time.Hour).UnixMilli(), *out.RateLimitedUntil, 60_000)
	require.Equal(t, 1, w.agentRuns(), "nobody tries for two hours")
	shown := w.show(id)
	require.Equal(t, protocol.StatusRateLimited, shown.Status)
	require.Equal(t, out.RateLimitedUntil, shown.RateLimitedUntil)
	for item := range w.Reader.Overview().Threads(ctx, []status.Listed{{Thread: id, Head: shown.Head}}) {
		require.Equal(t, protocol.StatusRateLimited, item.Status)
		require.Equal(t, out.RateLimitedUntil, item.RateLimitedUntil)
	}
	require.Equal(t, protocol.StatusRateLimited, w.mustStep(id, StepOptions{}).Status)
	require.Equal(t, 1, w.agentRuns())

	ahead = 2*time.Hour + time.Minute
	w.plays("ready,done")
	require.Equal(t, protocol.StatusIdle, w.show(id).Status)
	done := w.untilEnd(id)
	require.Equal(t, protocol.StatusCompleted, done.Status)
	facts, err := w.Reader.Heads.Facts(ctx, id)
	require.NoError(t, err)
	require.EqualValues(t, status.NotParked, facts.ParkedUntil)
}

// Times from a provider may be nonsense, and clocks may be set.
func TestNonsenseTimesAreBounded(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	for name, c := range map[string]struct {
		in   string // ms
		want time.Duration
	}{
		"in a century": {"3153600000000", 8 * time.Hour}, "long ago": {"-1000000", limits.FirstPark}, "unsaid": {"0", limits.FirstPark},
	} {
		w := newWorld(t, "!limited:rate-limit/"+c.in+"/100/ready")
		w.clock(&ahead)
		w.retries(func(a *protocol.Agent) {
			a.OnRateLimit, a.MaxRateLimitWait, a.Retry.Attempts = protocol.LimitWait, "8h", 1
		})
		id := w.start()
		out := w.mustStep(id, StepOptions{})
		require.Equal(t, protocol.StatusRateLimited, out.Status, name)
		require.InDelta(t, time.Now().Add(c.want).UnixMilli(), *out.RateLimitedUntil, 60_000, name)
		ahead = -365 * 24 * time.Hour
		require.NotEqual(t, protocol.StatusRateLimited, w.show(id).Status, "%s: a clock that was set back", name)
		ahead = 0
		out, err := w.Step(context.Background(), id, StepOptions{Wake: true})
		require.NoError(t, err)
		require.Equal(t, protocol.StatusRateLimited, out.Status)
		require.Equal(t, 2, w.agentRuns(), "a person can go on at once")
	}
}

// A fallback takes over if configured, and the step records the agent and the reason.
func TestAFallbackPlaysTheVisit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!limited:rate-limit/7200000/2/ready")
	other := fakeConfig("ready").Agents["fake"]
	also := fakeConfig("!limited:rate-limit/0/2/ready").Agents["fake"]
	also.Retry = &protocol.Retry{Attempts: 1}
	w.config.Agents["other"], w.config.Agents["also"] = other, also
	w.retries(func(a *protocol.Agent) { a.OnRateLimit, a.Fallback = protocol.LimitFallback, []string{"also", "other"} })
	var said []string
	w.onWarning(func(text string) { said = append(said, text) })
	id := w.start()
	out, err := w.Step(ctx, id, StepOptions{})
	require.NoError(t, err)
	step := w.readStep(protocol.Hash(out.StepHash))
	require.Len(t, step.Tries, 2)
	require.Equal(t, []string{"fake", "also"}, []string{step.Tries[0].Agent, step.Tries[1].Agent})
	require.Contains(t, said[0], `agent fake gave up (no more for now); continuing with also`)
	require.Equal(t, 3, w.agentRuns())

	// Without another fallback the visit fails. The next run starts with the first agent again.
	also.Account = "another"
	w.config.Agents["other"] = also
	w.config.Agents["fake"] = func() protocol.Agent {
		a := fakeConfig("!limited:rate-limit/0/100/ready").Agents["fake"]
		a.Retry, a.OnRateLimit, a.Fallback = &protocol.Retry{Attempts: 1}, protocol.LimitFallback, []string{"other"}
		return a
	}()
	a := w.config.Agents["other"]
	a.Args = []string{"fake-agent", "!limited:rate-limit/0/100/ready"}
	w.config.Agents["other"] = a
	_, err = w.Step(ctx, id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	require.Equal(t, 5, w.agentRuns())
}

// An answer to a question isn't lost if the provider refuses.
func TestAParkedAnswerIsKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var ahead time.Duration
	w := newWorld(t, "unclear")
	w.clock(&ahead)
	id := w.start()
	require.Equal(t, protocol.StatusSuspended, w.mustStep(id, StepOptions{}).Status)
	w.plays("!limited:rate-limit/3600000/1/ready")
	w.retries(func(a *protocol.Agent) { a.OnRateLimit = protocol.LimitWait })
	out, err := w.Resume(ctx, id, "It is a lexer.", StepOptions{})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusRateLimited, out.Status)
	require.Nil(t, w.show(id).Question)
	ahead = 2 * time.Hour
	w.plays("ready")
	out = w.mustStep(id, StepOptions{})
	require.Contains(t, w.readStep(protocol.Hash(out.StepHash)).EdgePrompt, "It is a lexer.")
}

// Only temporary failures are retried.
func TestOtherFailuresAreNotRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!exit:3")
	w.retries(func(*protocol.Agent) {})
	id := w.start()
	_, err := w.Step(context.Background(), id, StepOptions{})
	require.Error(t, err)
	require.Equal(t, 1, w.agentRuns())
	crashes := func(a *protocol.Agent) { a.Retry.On = []string{"crash"} }
	w.retries(crashes)
	_, err = w.Step(context.Background(), id, StepOptions{})
	require.Error(t, err)
	require.Equal(t, 4, w.agentRuns())
	w.plays("!result-then-fail:ready") // killed before it ended
	w.retries(crashes)
	_, err = w.Step(context.Background(), id, StepOptions{})
	require.Error(t, err)
	require.Equal(t, 7, w.agentRuns())
}

// However the engine is killed while tries fail, no cost is lost or counted twice.
func TestTriesHoldUnderKills(t *testing.T) {
	t.Parallel()
	for n := 1; ; n += 3 {
		w := newBoundedWorld(t, "", protocol.Limits{MaxCostUSD: 100})
		id := w.start()
		const script = "!limited:crashed/0/1/ready,done"
		w.plays(script)
		_, err := w.Step(context.Background(), id, StepOptions{}) // the first try fails
		require.Error(t, err)
		killed := w.killedAtChange(n, w.engineProcess(id, script))
		w.eventually("the agent has ended", func() bool { return !w.Reader.RunDir(id).Alive(w.Reader.RunDir(id).Read()) })
		w.plays("ready,done")
		if w.show(id).CurrentRole == "" || string(w.show(id).CurrentRole) == "planner" {
			w.mustStep(id, StepOptions{})
		}
		step := w.readStep(w.head(id))
		require.NotEmpty(t, step.Tries, "killed at change %d", n)
		require.Equal(t, "no more for now", step.Tries[0].Error)
		require.GreaterOrEqual(t, w.spent(id).CostUSD, 0.1-1e-9, "killed at change %d", n)
		require.LessOrEqual(t, w.spent(id).CostUSD, 0.5+1e-9, "killed at change %d", n)
		if !killed {
			return
		}
	}
}

// A run is exhausted if the agent has failed and the policy allows no other try.
func TestWhatExhaustsARun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	none := func(*protocol.Agent) {}
	for name, c := range map[string]struct {
		script    string
		agent     func(*protocol.Agent)
		exhausted bool
	}{
		"a server that fails":        {"!limited:server/0/100/ready", none, true},
		"a crash":                    {"!exit:3", none, true},
		"an error":                   {"!error", none, true},
		"no result":                  {"!print:done", none, true},
		"a timeout":                  {"!hang", none, true},
		"a rate limit":               {"!limited:rate-limit/3600000/100/ready", none, false},
		"a rate limit that is over":  {"!limited:rate-limit/1/100/ready", none, false},
		"a missing login":            {"!limited:machine/0/100/ready", none, false},
		"a missing program":          {"ready", func(a *protocol.Agent) { a.Command = "/missing" }, false},
		"a step that is not its own": {"!lie:role", none, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.script)
			w.retries(c.agent)
			id := w.start()
			o := StepOptions{}
			if name == "a timeout" {
				o.Timeout = 200 * time.Millisecond
			}
			_, err := w.Step(ctx, id, o)
			require.Error(t, err)
			last := w.Reader.RunDir(id).Read()
			require.Equal(t, c.exhausted, last.Exhausted)
			require.NotNil(t, last.Error)
			w.plays("ready")
			w.retries(none)
			require.NotEmpty(t, w.mustStep(id, StepOptions{}).StepHash)
			require.False(t, w.Reader.RunDir(id).Read().Exhausted, name)
		})
	}
	for script, exhausted := range map[string]bool{"kill -9 $$": true, "exit 127": true, "exit 3": false} {
		w, id := commands(t, script)
		_, err := w.Step(ctx, id, StepOptions{})
		require.Equal(t, exhausted, err != nil)
		require.Equal(t, exhausted, w.Reader.RunDir(id).Read().Exhausted, script)
	}
}
