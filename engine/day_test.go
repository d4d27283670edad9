//go:build unix

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
)

// perDay sets the limit per day.
func (w *world) perDay(l protocol.DayLimits) {
	w.config.Limits = &protocol.LimitsConfig{PerDay: &l}
}

// spentToday returns the amounts in the day's file.
func (w *world) spentToday() (usd float64, tokens int64) {
	data, err := os.ReadFile(filepath.Join(w.Reader.Dirs.Limits(), "per-day.sum"))
	require.NoError(w.t, err)
	var s struct {
		CostUSD float64 `json:"costUsd"`
		Tokens  int64   `json:"tokens"`
		Counted map[string]string
	}
	require.NoError(w.t, json.Unmarshal(data, &s))
	require.Empty(w.t, s.Counted)
	return s.CostUSD, s.Tokens
}

// At the limit of the day no agent starts, in any thread of the home. Running ones finish, and the others
// wait until midnight or until more is granted.
func TestADaysLimitHoldsForAllChildren(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var ahead time.Duration
	w := newManyWorld(t, 40)
	w.clock(&ahead)
	w.plays("!cost:done/0.1/10")
	w.perDay(protocol.DayLimits{CostUSD: 1})
	id := w.start()
	drive := func(o StepOptions) protocol.StepOutput {
		o.Parallel = 4
		outs, err := w.Do(ctx, id, Work{StepOptions: o})
		require.NoError(t, err)
		return outs[len(outs)-1]
	}
	out := drive(StepOptions{})
	require.Equal(t, protocol.StatusRateLimited, out.Status)
	paid := w.agentRuns()
	require.GreaterOrEqual(t, paid, 10)
	require.LessOrEqual(t, paid, 14)
	usd, tokens := w.spentToday()
	require.InDelta(t, 0.1*float64(paid), usd, 1e-9)
	require.EqualValues(t, 10*paid, tokens)
	now := time.Now()
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location())
	require.Equal(t, midnight.UnixMilli(), *out.RateLimitedUntil)
	shown := w.show(id)
	require.Equal(t, protocol.CodeLimit, shown.Error.Code)
	require.Equal(t, "uwf thread resume "+id+" --raise-limit", shown.Error.Hint)
	prosetest.Text(t, shown.Error.Message)

	// The limit applies to all agents, including other threads, retries and fallbacks.
	require.Equal(t, protocol.StatusRateLimited, drive(StepOptions{Wake: true}).Status)
	w.config.Agents["other"] = fakeConfig("ready").Agents["fake"]
	w.retries(func(a *protocol.Agent) { a.OnRateLimit, a.Fallback = protocol.LimitFallback, []string{"other"} })
	other := w.start()
	pos, err := w.Reader.Position(ctx, other, w.head(other))
	require.NoError(t, err)
	account, l := w.accountOf(ctx, pos, "worker", StepOptions{})
	require.Equal(t, decide.Limited, account)
	require.Equal(t, midnight.UnixMilli(), l.UntilMs)
	require.Equal(t, paid, w.agentRuns())

	// A grant of as much again applies to all threads: those waiting for midnight are due.
	last := shown.Children[39].Thread
	due := func() []string {
		due, err := w.Reader.Due(ctx)
		require.NoError(t, err)
		return due
	}
	require.NotContains(t, due(), last)
	lines, err := w.Grant(ctx, id, protocol.Limits{}, budget.More{Again: true})
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.Contains(t, due(), last)
	require.Equal(t, protocol.StatusIdle, w.show(last).Status)
	require.Equal(t, protocol.StatusRateLimited, drive(StepOptions{Wake: true}).Status)
	again := w.agentRuns()
	require.GreaterOrEqual(t, again, paid+10)
	require.LessOrEqual(t, again, paid+14)

	// At midnight all threads are due.
	ahead = midnight.Sub(now) + time.Minute
	require.Equal(t, protocol.StatusRateLimited, drive(StepOptions{}).Status)
	require.GreaterOrEqual(t, w.agentRuns(), again+10)
	w.config.Limits = nil
	require.Equal(t, protocol.StatusCompleted, drive(StepOptions{Wake: true}).Status)
	require.Equal(t, 40, w.agentRuns())
}

// Failed tries count. At the limit there are no retries and no fallback; the visit waits.
func TestFailedTriesCountForTheDay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!limited:server/0/100/ready")
	w.config.Agents["other"] = fakeConfig("ready").Agents["fake"]
	w.retries(func(a *protocol.Agent) { a.Retry.Attempts, a.Fallback = 50, []string{"other"} })
	w.perDay(protocol.DayLimits{CostUSD: 0.2})
	id := w.start()
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusRateLimited, out.Status)
	require.Equal(t, 2, w.agentRuns())
	require.Equal(t, protocol.StatusRateLimited, w.mustStep(id, StepOptions{Wake: true}).Status)
	require.Equal(t, 2, w.agentRuns())
	w.plays("ready")
	w.perDay(protocol.DayLimits{CostUSD: 0.2})
	_, err := w.Grant(ctx, id, protocol.Limits{}, budget.More{Again: true})
	require.NoError(t, err)
	out = w.mustStep(id, StepOptions{Wake: true})
	require.Len(t, w.readStep(protocol.Hash(out.StepHash)).Tries, 2)
	_, err = w.Grant(ctx, id, protocol.Limits{}, budget.More{Again: true})
	requireCode(t, err, protocol.CodeFailed) // the limit isn't reached
}

// A person's answer is kept while the limit of the day is reached.
func TestAnAnswerWaitsForTheDay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!cost:unclear/1/10")
	w.perDay(protocol.DayLimits{CostUSD: 1})
	id := w.start()
	require.Equal(t, protocol.StatusSuspended, w.mustStep(id, StepOptions{}).Status)
	out, err := w.Resume(ctx, id, "It is a lexer.", StepOptions{})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusRateLimited, out.Status)
	require.Equal(t, 1, w.agentRuns())
	_, err = w.Grant(ctx, id, protocol.Limits{}, budget.More{Again: true})
	require.NoError(t, err)
	out = w.mustStep(id, StepOptions{})
	require.Contains(t, w.readStep(protocol.Hash(out.StepHash)).EdgePrompt, "It is a lexer.")
}

// A damaged sum blocks all agents until midnight, and no longer.
func TestADamagedSumEndsAtMidnight(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	w := newWorld(t, "!cost:again/1/10")
	w.clock(&ahead)
	w.perDay(protocol.DayLimits{CostUSD: 3})
	id := w.start()
	w.mustStep(id, StepOptions{})
	require.NoError(t, os.WriteFile(filepath.Join(w.Reader.Dirs.Limits(), "per-day.sum"), []byte("damaged"), 0o600))
	for range 2 {
		require.Equal(t, protocol.StatusRateLimited, w.mustStep(id, StepOptions{}).Status)
	}
	ahead = 24 * time.Hour
	require.NotEmpty(t, w.mustStep(id, StepOptions{}).StepHash)
}

// A result that a person discards is counted, once.
func TestADiscardedResultCountsForTheDay(t *testing.T) {
	t.Parallel()
	const script = "!cost:again/0.4/10"
	discarded := 0
	for n := 1; ; n++ {
		w := newWorld(t, script)
		id := w.start()
		cmd := w.engineProcess(id, script)
		cmd.Env = append(cmd.Env, perDay+"=100")
		killed := w.killedAtChange(n, cmd)
		w.eventually("the agent has ended", func() bool { return !w.Reader.RunDir(id).Alive(w.Reader.RunDir(id).Read()) })
		w.perDay(protocol.DayLimits{CostUSD: 100})
		paid := w.stepCosts(id)
		if at := w.show(id); at.Pending {
			discarded++
			paid += 0.4
		}
		w.mustStep(id, StepOptions{Fresh: true})
		usd, _ := w.spentToday()
		require.InDelta(t, paid+0.4, usd, 1e-9, "killed at change %d", n)
		if !killed {
			require.NotZero(t, discarded)
			return
		}
	}
}

// An unknown cost isn't zero: the tokens still count, and what no limit can count gives a warning.
func TestUnknownCostsOfADay(t *testing.T) {
	t.Parallel()
	for script, c := range map[string]struct {
		limits protocol.DayLimits
		warned bool
		held   bool
	}{
		"!cost:again/?/60":   {protocol.DayLimits{CostUSD: 1, Tokens: 100}, false, true},
		"!cost:again/0.1/60": {protocol.DayLimits{CostUSD: 1, Tokens: 100}, false, true},
		"!cost:again/?/61":   {protocol.DayLimits{CostUSD: 1}, true, false},
		"!cost:again/?/0":    {protocol.DayLimits{CostUSD: 1, Tokens: 100}, true, false},
	} {
		w := newWorld(t, script)
		w.perDay(c.limits)
		var mu sync.Mutex
		warned := map[string]int{}
		w.onWarning(func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warned[text]++
		})
		id := w.start()
		for range 2 {
			require.NotEmpty(t, w.mustStep(id, StepOptions{}).StepHash)
		}
		require.Equal(t, c.held, w.mustStep(id, StepOptions{}).StepHash == "", script)
		require.Equal(t, c.warned, len(warned) == 1, "%s: %v", script, warned)
	}
}

// Commands and persons cost nothing and run at the limit of the day.
func TestADaysLimitStopsNoCommand(t *testing.T) {
	t.Parallel()
	w, id := commands(t, "true")
	w.perDay(protocol.DayLimits{CostUSD: 1})
	require.NoError(t, os.MkdirAll(w.Reader.Dirs.Limits(), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(w.Reader.Dirs.Limits(), "per-day.sum"), []byte("damaged"), 0o600))
	require.True(t, w.mustStep(id, StepOptions{}).Done)
}

// Without a limit of the day, no file is read or written.
func TestWithoutADaysLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!cost:done/0.1/10")
	w.plays("ready,done")
	w.untilEnd(w.start())
	require.NoDirExists(t, w.Reader.Dirs.Limits())
}

// stepCosts returns the sum of the costs of a thread's steps.
func (w *world) stepCosts(id string) (sum float64) {
	at, err := thread.Open(context.Background(), w.Reader.Nodes(), w.head(id))
	require.NoError(w.t, err)
	for s, err := range at.Steps(context.Background()) {
		require.NoError(w.t, err)
		sum += *s.Usage.CostUSD
	}
	return sum
}

// However the engine is killed, the cost of a step counts once. At most the try in flight is lost.
func TestADaysSumHoldsUnderKills(t *testing.T) {
	t.Parallel()
	const script = "!cost:again/0.4/10"
	for n := 1; ; n++ {
		w := newWorld(t, script)
		id := w.start()
		cmd := w.engineProcess(id, script)
		cmd.Env = append(cmd.Env, perDay+"=100")
		killed := w.killedAtChange(n, cmd)
		w.eventually("the agent has ended", func() bool { return !w.Reader.RunDir(id).Alive(w.Reader.RunDir(id).Read()) })
		w.perDay(protocol.DayLimits{CostUSD: 100})
		for range 2 {
			w.mustStep(id, StepOptions{})
		}
		usd, _ := w.spentToday()
		require.InDelta(t, w.stepCosts(id), usd, 1e-9, "killed at change %d", n)
		if !killed {
			return
		}
	}
}

// While its cost cannot be added, a step doesn't become the head: it waits for disk space, and counts then.
func TestADaysSumOnAFullDisk(t *testing.T) {
	t.Parallel()
	for n := int64(1); ; n++ {
		w := newWorld(t, "!cost:again/0.4/10")
		w.perDay(protocol.DayLimits{CostUSD: 100})
		id := w.start()
		left := &atomic.Int64{}
		left.Store(n)
		e := openEngine(t, w.Reader.Dirs.Home, fullFS{durable.OS(), left}, func() protocol.Config { return w.config })
		_, err := e.Step(context.Background(), id, StepOptions{})
		for range 2 {
			w.mustStep(id, StepOptions{})
		}
		require.LessOrEqual(t, w.agentRuns(), 3)
		data, readErr := os.ReadFile(filepath.Join(w.Reader.Dirs.Limits(), "per-day.sum"))
		require.NoError(t, readErr)
		require.Contains(t, string(data), fmt.Sprintf(`"costUsd":%.1f,`, w.stepCosts(id)), "full after %d, %s", n, data)
		if err == nil && left.Load() > 0 {
			return
		}
	}
}
