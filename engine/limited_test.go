//go:build unix

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/agentselect"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/limits"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
)

// A fallback takes over after the failures listed in fallbackOn.
func TestWhenTheFallbackTakesOver(t *testing.T) {
	t.Parallel()
	all := []string(nil)
	for name, c := range map[string]struct {
		script, onRateLimit string
		on                  []string
		runs                int // of both agents
		fails               bool
	}{
		"server":                          {"!limited:server/0/100/ready", "", all, 4, false},
		"crash":                           {"!exit:3", "", all, 2, false},
		"rate limit":                      {"!limited:rate-limit/7200000/100/ready", protocol.LimitFallback, all, 2, false},
		"rate limit, stop":                {"!limited:rate-limit/7200000/100/ready", "", all, 1, true},
		"server, while limits are parked": {"!limited:server/0/100/ready", protocol.LimitWait, all, 4, false},
		"server, only crash is named":     {"!limited:server/0/100/ready", "", []string{"crash"}, 3, true},
		"none is named":                   {"!exit:3", "", []string{}, 1, true},
		"an error that would come again":  {"!error", "", all, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.script)
			w.config.Agents["other"] = fakeConfig("ready").Agents["fake"]
			w.retries(func(a *protocol.Agent) {
				a.OnRateLimit, a.Fallback, a.FallbackOn = c.onRateLimit, []string{"other"}, c.on
			})
			out, err := w.Step(context.Background(), w.start(), StepOptions{})
			require.Equal(t, c.fails, err != nil, "%v", err)
			require.Equal(t, c.fails, out.StepHash == "")
			require.Equal(t, c.runs, w.agentRuns())
		})
	}
}

// If the accounts of a visit's agents are limited, it is parked without a try until the first reset. A person
// can try at once.
func TestAVisitIsNotTriedUnderALimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!limited:rate-limit/3600000/1/ready")
	later := fakeConfig("!limited:rate-limit/7200000/100/ready").Agents["fake"]
	later.Account = "later"
	w.config.Agents["later"] = later
	w.retries(func(a *protocol.Agent) { a.OnRateLimit, a.Fallback = protocol.LimitFallback, []string{"later"} })
	_, err := w.Step(ctx, w.start(), StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	require.Equal(t, 2, w.agentRuns())
	id := w.start()
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, 2, w.agentRuns())
	require.Equal(t, protocol.StatusRateLimited, out.Status)
	require.InDelta(t, time.Now().Add(time.Hour).UnixMilli(), *out.RateLimitedUntil, 60_000)
	prosetest.Text(t, w.show(id).Error.Message)
	require.Len(t, w.accounts().Active(), 2)
	out, err = w.Step(ctx, id, StepOptions{Wake: true})
	require.NoError(t, err)
	require.NotEmpty(t, out.StepHash)
	require.Len(t, w.accounts().Active(), 1, "what was granted ends the limit")
}

// A person's answer is kept if its visit isn't tried.
func TestAnAnswerThatIsNotTriedIsKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var ahead time.Duration
	w := newWorld(t, "unclear")
	w.clock(&ahead)
	id := w.start()
	w.mustStep(id, StepOptions{})
	other := w.start()
	w.plays("!limited:rate-limit/3600000/1/ready")
	_, err := w.Step(ctx, other, StepOptions{})
	require.Error(t, err)
	runs := w.agentRuns()
	out, err := w.Resume(ctx, id, "It is a lexer.", StepOptions{})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusRateLimited, out.Status)
	require.Equal(t, runs, w.agentRuns())
	ahead = 2 * time.Hour
	w.plays("ready")
	out = w.mustStep(id, StepOptions{})
	require.Contains(t, w.readStep(protocol.Hash(out.StepHash)).EdgePrompt, "It is a lexer.")
}

// An agent that its provider suspends with a limit marks the account as limited.
func TestASuspendedAgentLimitsItsAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!suspended-by-limit")
	require.NotEmpty(t, w.mustStep(w.start(), StepOptions{}).StepHash)
	require.Equal(t, protocol.StatusRateLimited, w.mustStep(w.start(), StepOptions{}).Status)
	require.Equal(t, 1, w.agentRuns())
}

// However the engine is killed, it leaves no limit that blocks a later engine, and no agent runs more often
// than without the kill.
func TestLimitsHoldUnderKills(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const script = "!limited:rate-limit/3600000/2/ready"
	for n := 1; ; n++ {
		w := newWorld(t, script)
		id := w.start()
		cmd := w.engineProcess(id, script)
		cmd.Env, cmd.Stderr = append(cmd.Env, fmt.Sprintf("%s=%d", killAt, n)), nil
		_ = cmd.Run()
		w.eventually("the agent has ended", func() bool { return !w.Reader.RunDir(id).Alive(w.Reader.RunDir(id).Read()) })
		made := w.show(id).Head
		for tries := 0; w.show(id).Head == made && tries < 6; tries++ {
			before := w.agentRuns()
			_, _ = w.Step(ctx, id, StepOptions{Wake: true})
			require.LessOrEqual(t, w.agentRuns(), before+1, "killed at change %d", n)
		}
		require.NotEqual(t, made, w.show(id).Head, "killed at change %d", n)
		require.Equal(t, 3, w.agentRuns(), "killed at change %d", n)
		require.Empty(t, w.accounts().Active(), "killed at change %d", n)
		if cmd.ProcessState.Exited() {
			return
		}
	}
}

// A thread waiting for an agent slot can be stopped and continued.
func TestAWaitForAPlaceIsStopped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "ready")
	w.config.Concurrency = map[string]int{"team": 1}
	w.retries(func(a *protocol.Agent) { a.Account = "team" })
	taken, err := durable.Lock(ctx, filepath.Join(w.Reader.Dirs.Limits(), "team.slot-1"))
	require.NoError(t, err)
	id := w.start()
	for range 2 {
		ended := make(chan error)
		go func() {
			_, err := w.Step(ctx, id, StepOptions{})
			ended <- err
		}()
		w.eventually("it is shown", func() bool { return w.show(id).Status == protocol.StatusRunning })
		running, err := w.Reader.Running(ctx)
		require.NoError(t, err)
		require.Len(t, running, 1)
		stopped, err := w.Stop(ctx, id)
		require.NoError(t, err)
		require.True(t, stopped)
		requireCode(t, <-ended, protocol.CodeTerminated)
	}
	require.Equal(t, protocol.StatusIdle, w.show(id).Status)
	require.Zero(t, w.agentRuns())
	require.NoError(t, taken.Unlock())
	require.NotEmpty(t, w.mustStep(id, StepOptions{}).StepHash)
}

// A visit that waits before its next try counts as running: it hasn't failed, and can be stopped.
func TestAPauseIsStopped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, script := range map[string]string{
		"a failing server": "!limited:server/0/100/ready", "a limit that is reset soon": "!limited:rate-limit/50000/100/ready",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script)
			w.retries(func(a *protocol.Agent) { a.Retry.Backoff = "50s" })
			id := w.start()
			ended := make(chan error)
			go func() {
				_, err := w.Step(ctx, id, StepOptions{})
				ended <- err
			}()
			w.eventually("it waits", func() bool { return w.agentRuns() == 1 && w.Reader.RunDir(id).Read().Pid == 0 })
			w.eventually("it is shown", func() bool { return w.show(id).Status == protocol.StatusRunning })
			stopped, err := w.Stop(ctx, id)
			require.NoError(t, err)
			require.True(t, stopped)
			requireCode(t, <-ended, protocol.CodeTerminated)
			require.Equal(t, 1, w.agentRuns())
			require.Equal(t, protocol.StatusIdle, w.show(id).Status)
		})
	}
}

// The thread waits for a limit even if it cannot be recorded.
func TestALimitThatCannotBeNotedIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!limited:rate-limit/400/1/ready")
	w.retries(func(*protocol.Agent) {})
	require.NoError(t, os.WriteFile(w.Reader.Dirs.Limits(), nil, 0o600))
	began := time.Now()
	require.NotEmpty(t, w.mustStep(w.start(), StepOptions{}).StepHash)
	require.Equal(t, 2, w.agentRuns())
	require.Greater(t, time.Since(began), 400*time.Millisecond)
}

// The visit waits for, and then runs, the agent whose account is reset first.
func TestTheSoonestResetIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		first, second time.Duration // from now
		held          bool          // the second account is known to be limited
		waits         string        // the agent waited for
	}{
		"both are refused":             {time.Hour, 3 * time.Hour, false, "fake"},
		"both are refused, the second": {3 * time.Hour, time.Hour, false, "later"},
		"one is not started":           {time.Hour, 3 * time.Hour, true, "fake"},
		"the second is not started":    {3 * time.Hour, time.Hour, true, "later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ahead time.Duration
			w := newWorld(t, fmt.Sprintf("!limited:rate-limit/%d/100/ready", c.first.Milliseconds()))
			w.clock(&ahead)
			later := fakeConfig(fmt.Sprintf("!limited:rate-limit/%d/100/ready", c.second.Milliseconds())).Agents["fake"]
			later.Account, later.OnRateLimit, later.Retry = "later", protocol.LimitWait, &protocol.Retry{Attempts: 1}
			w.config.Agents["later"] = later
			w.retries(func(a *protocol.Agent) {
				a.OnRateLimit, a.Fallback, a.Retry.Attempts = protocol.LimitFallback, []string{"later"}, 1
			})
			if c.held {
				pass, _, err := w.accounts().Enter(ctx, limits.NewAccount("later", nil), limits.Terms{Policy: decide.Policy{MaxRateLimitWait: 9 * time.Hour}})
				require.NoError(t, err)
				pass.Refused(limits.Refusal{RetryAt: time.Now().Add(c.second)})
				pass.Leave()
			}
			id := w.start()
			out := w.mustStep(id, StepOptions{})
			require.Equal(t, protocol.StatusRateLimited, out.Status)
			require.InDelta(t, time.Now().Add(time.Hour).UnixMilli(), *out.RateLimitedUntil, 60_000)
			require.Contains(t, w.show(id).Error.Message, "agent "+c.waits)
			runs := w.agentRuns()
			ahead = 2 * time.Hour
			require.Equal(t, protocol.StatusRateLimited, w.mustStep(id, StepOptions{}).Status)
			require.Equal(t, runs+1, w.agentRuns(), "it is asked again, and no other")
		})
	}
}

// A person's answer survives if uwf is killed while it waits to start the agent.
func TestAnAnswerOutlivesAKilledWait(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var ahead time.Duration
	w := newWorld(t, "unclear")
	w.clock(&ahead)
	id := w.start()
	w.mustStep(id, StepOptions{})
	w.plays("!limited:rate-limit/3600000/1/ready")
	w.retries(func(a *protocol.Agent) { a.OnRateLimit = protocol.LimitWait })
	out, err := w.Resume(ctx, id, "It is a lexer.", StepOptions{})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusRateLimited, out.Status)
	ahead = 2 * time.Hour
	last := w.Reader.RunDir(id).Read()
	last.Pid, last.Status, last.Error = 0, rundir.Starting, nil // the state that the waiting process leaves
	require.NoError(t, w.Reader.RunDir(id).Write(last))
	w.plays("ready")
	out = w.mustStep(id, StepOptions{})
	require.Contains(t, w.readStep(protocol.Hash(out.StepHash)).EdgePrompt, "It is a lexer.")
}

// A refusal by the provider is known to the next engine if the first one was killed, whether the agent
// suspended or failed. A person can try anyway.
func TestARefusalOutlivesTheEngine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, script := range []string{"!limited:rate-limit/3600000/100/ready", "!suspended-by-limit"} {
		w := newWorld(t, script)
		w.retries(func(a *protocol.Agent) { a.OnRateLimit = protocol.LimitWait })
		id := w.start()
		before := w.head(id)
		out, err := w.Step(ctx, id, StepOptions{})
		require.NoError(t, err)
		last := w.Reader.RunDir(id).Read()
		last.Status, last.Error = rundir.Running, nil
		if out.StepHash != "" {
			require.NoError(t, w.Reader.Heads.Move(ctx, id, protocol.Hash(out.StepHash), before))
		}
		require.NoError(t, w.Reader.RunDir(id).Write(last))
		require.NoError(t, w.Reader.Heads.SetFacts(ctx, id, heads.Facts{ParkedUntil: status.NotParked}))
		require.NoError(t, os.RemoveAll(w.Reader.Dirs.Limits()))
		_, err = w.Step(ctx, id, StepOptions{})
		require.NoError(t, err)
		require.Equal(t, protocol.StatusRateLimited, w.mustStep(w.start(), StepOptions{}).Status)
		require.Equal(t, 1, w.agentRuns(), script)
		_, err = w.Do(ctx, w.start(), Work{Steps: 1, StepOptions: StepOptions{Wake: true}})
		require.NoError(t, err)
		require.Equal(t, 2, w.agentRuns(), script)
	}
}

func TestATickLooksFirstAtWhatKilledEnginesLeft(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!limited:rate-limit/3600000/100/ready")
	w.retries(func(a *protocol.Agent) { a.OnRateLimit = protocol.LimitWait })
	for range 4 {
		w.start()
	}
	id := w.start()
	w.mustStep(id, StepOptions{})
	last := w.Reader.RunDir(id).Read()
	last.Status, last.Error = rundir.Running, nil
	require.NoError(t, w.Reader.RunDir(id).Write(last))
	require.NoError(t, w.Reader.Heads.SetFacts(ctx, id, heads.Facts{ParkedUntil: status.NotParked}))
	require.NoError(t, os.RemoveAll(w.Reader.Dirs.Limits()))
	// A process that another test is just starting has a copy of the run's lock for a moment.
	require.Eventually(t, func() bool {
		due, err := w.Reader.Due(ctx)
		return err == nil && slices.Contains(due, id)
	}, time.Minute, time.Millisecond)
	parked := 0
	require.NoError(t, w.Tick(ctx, 1, StepOptions{}, func(at Ticked) {
		require.Equal(t, protocol.StatusRateLimited, at.Output.Status)
		parked++
	}))
	require.Equal(t, 5, parked)
	require.Equal(t, 1, w.agentRuns())
}

// A tick ignores a due thread that another process has ended.
func TestATickPassesOverWhatHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	id := w.start()
	w.untilEnd(id)
	_, reported, _ := w.tickOne(context.Background(), id, StepOptions{})
	require.False(t, reported)
}

// After the reset of a limit, a tick steps one thread first. If that is refused, it tries no other.
func TestATickSendsOneScout(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const n = 8
	var ahead time.Duration
	w := newManyWorld(t, n)
	w.clock(&ahead)
	w.plays("!limited:rate-limit/3600000/2/done")
	w.retries(func(a *protocol.Agent) { a.OnRateLimit, a.Retry.Attempts = protocol.LimitWait, 1 })
	id := w.start()
	outs, err := w.Do(ctx, id, Work{StepOptions: StepOptions{Parallel: 1}})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusRateLimited, outs[len(outs)-1].Status)
	require.Equal(t, 1, w.agentRuns())
	tick := func() (stood []protocol.Status) {
		require.NoError(t, w.Tick(ctx, 4, StepOptions{}, func(at Ticked) {
			require.Nil(t, at.Error)
			stood = append(stood, at.Output.Status)
		}))
		return stood
	}
	ahead = 2 * time.Hour
	require.Equal(t, slices.Repeat([]protocol.Status{protocol.StatusRateLimited}, n), tick())
	require.Equal(t, 2, w.agentRuns(), "one was refused for all")
	require.Empty(t, tick())
	ahead = 5 * time.Hour
	require.Equal(t, slices.Repeat([]protocol.Status{protocol.StatusCompleted}, n), tick())
	require.Equal(t, 2+n, w.agentRuns())
}

// Starting a background worker doesn't wait for the account; the worker does.
func TestBackgroundWorkerWaits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "ready")
	cmd, err := w.Casting().Agent(ctx, agentselect.Choices{}, "test", "planner")
	require.NoError(t, err)
	pass, _, err := w.accounts().Enter(ctx, w.Casting().Account(ctx, cmd, "test", "planner"), limits.Terms{Policy: decide.Policy{MaxRateLimitWait: time.Hour}})
	require.NoError(t, err)
	pass.Refused(limits.Refusal{RetryAt: time.Now().Add(50 * time.Second)})
	pass.Leave()
	id := w.start()
	began := time.Now()
	out, err := w.background(id, "ready", Work{Steps: 1})
	require.NoError(t, err)
	require.Less(t, time.Since(began), 40*time.Second)
	require.Equal(t, protocol.StatusRunning, out.Status)
	require.Zero(t, w.agentRuns())
	_, err = w.Stop(ctx, id)
	require.NoError(t, err)
	w.wait(id)
	require.Zero(t, w.agentRuns())
}

// An agent gets the number of its retries. retry.attempts counts all runs.
func TestAnAgentKnowsItsRetries(t *testing.T) {
	t.Parallel()
	for kind, retries := range map[protocol.FailureKind][]string{
		protocol.FailedRateLimit: {"retries 2", "retries 1", "retries 0"}, protocol.FailedServer: {"retries 2", "retries 1", "retries 0"}, protocol.FailedCrash: {"retries 2"},
	} {
		w := newWorld(t, "!counts:"+string(kind))
		w.retries(func(*protocol.Agent) {})
		id := w.start()
		_, err := w.Step(context.Background(), id, StepOptions{})
		require.Error(t, err)
		var errs []string
		for _, try := range runfiles.Dir(w.Reader.RunDir(id).Path).Tries(nil) {
			errs = append(errs, try.Error)
		}
		require.Equal(t, retries, errs, kind)
	}
}

// A role is limited only if all its agents are. The check writes nothing.
func TestAnAccountIsLimitedForAllAgents(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "ready")
	later := fakeConfig("ready").Agents["fake"]
	later.Account, later.Retry = "later", &protocol.Retry{Attempts: 1}
	w.config.Agents["later"] = later
	falls := func(onRateLimit string, fallback ...string) {
		w.retries(func(a *protocol.Agent) { a.Account, a.OnRateLimit, a.Fallback = "now", onRateLimit, fallback })
	}
	refuse := func(account string, in time.Duration) {
		w.accounts().Refused(limits.NewAccount(account, nil),
			limits.Refusal{At: time.Now(), Started: time.Now(), RetryAt: time.Now().Add(in)}, decide.Policy{MaxRateLimitWait: 9 * time.Hour})
	}
	id := w.start()
	at := func() (decide.Account, time.Duration) {
		pos, err := w.Reader.Position(ctx, id, w.head(id))
		require.NoError(t, err)
		account, l := w.accountOf(ctx, pos, "planner", StepOptions{})
		return account, max(0, time.Until(l.Until()).Round(time.Hour))
	}
	free := func(why string) {
		account, _ := at()
		require.Equal(t, decide.Free, account, why)
	}
	limited := func(in time.Duration, why string) {
		account, left := at()
		require.Equal(t, decide.Limited, account, why)
		require.Equal(t, in, left, why)
	}
	falls(protocol.LimitFallback, "later")
	free("nothing is limited")
	require.NoDirExists(t, w.Reader.Dirs.Limits())
	refuse("now", 3*time.Hour)
	free("the fallback is free")
	falls("", "later")
	limited(3*time.Hour, "no fallback")
	falls(protocol.LimitFallback, "missing")
	free("unknown fallback")
	falls(protocol.LimitFallback, "later")
	refuse("later", 2*time.Hour)
	limited(2*time.Hour, "the first")
	falls(protocol.LimitFallback)
	limited(3*time.Hour, "nobody takes over")
}
