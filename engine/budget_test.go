//go:build unix

package engine

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
)

// newBoundedWorld returns a world whose workflow has limits.
func newBoundedWorld(t *testing.T, agent string, l protocol.Limits) *world {
	t.Helper()
	w := newWorld(t, agent)
	flow, schema := testWorkflow(&l)
	w.workflow = w.put(flow, schema)
	return w
}

// spent returns the amount that a thread has spent.
func (w *world) spent(id string) protocol.Amount {
	w.t.Helper()
	_, spent, err := w.Reader.Spending(context.Background(), id)
	require.NoError(w.t, err)
	return spent
}

func (w *world) untilEnd(id string) protocol.StepOutput {
	w.t.Helper()
	outs, err := w.Do(context.Background(), id, Work{})
	require.NoError(w.t, err)
	return outs[len(outs)-1]
}

func TestARunBeginsNothingOnceItHasCostWhatItMay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newBoundedWorld(t, "!cost:again/0.4/10", protocol.Limits{MaxCostUSD: 1})
	id := w.start()
	out := w.untilEnd(id)
	require.Equal(t, protocol.StatusSuspended, out.Status)
	require.Nil(t, out.Question, "no answer helps")
	require.Equal(t, protocol.CodeLimit, out.Error.Code)
	prosetest.Text(t, out.Error.Message)
	require.Equal(t, 3, w.agentRuns())
	require.Contains(t, strings.Join(w.runs(), "\n"), `budget {"costUsd":0.2,"tokens":null,"timeMs":null}`)

	// Neither a step nor an answer starts an agent, and repeating them doesn't either.
	for range 2 {
		require.Equal(t, protocol.StatusSuspended, w.mustStep(id, StepOptions{}).Status)
	}
	_, err := w.Resume(ctx, id, "go on", StepOptions{})
	requireCode(t, err, protocol.CodeLimit)
	_, err = w.Poke(ctx, id, "again", StepOptions{})
	requireCode(t, err, protocol.CodeLimit)
	require.Equal(t, 3, w.agentRuns())

	// Totals are computed again if their file is missing.
	require.NoError(t, os.Remove(w.Reader.RunDir(id).File(runfiles.TotalsFile)))
	require.Equal(t, protocol.StatusSuspended, w.show(id).Status)
	require.InDelta(t, 1.2, w.spent(id).CostUSD, 1e-9)

	// The grant is relative to the amount spent, and reported.
	lines, err := w.Grant(ctx, id, protocol.Limits{}, budget.More{Again: true})
	require.NoError(t, err)
	prosetest.Text(t, lines)
	_, err = w.Grant(ctx, id, protocol.Limits{}, budget.More{Again: true})
	requireCode(t, err, protocol.CodeFailed)
	require.Equal(t, protocol.StatusSuspended, w.untilEnd(id).Status)
	require.Equal(t, 6, w.agentRuns())
	require.InDelta(t, 2.4, w.spent(id).CostUSD, 1e-9)
	_, err = w.Grant(ctx, id, protocol.Limits{}, budget.More{Amount: protocol.Amount{Tokens: 5}})
	requireCode(t, err, protocol.CodeUsage)
}

// Tokens and time bound a run as dollars do. A limit of the thread overrides the workflow's, and that the
// config's.
func TestEffectiveLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!cost:again/?/40")
	w.config.Limits = &protocol.LimitsConfig{MaxTokens: 100, MaxTime: "1h"}
	id := w.start()
	prosetest.Text(t, w.untilEnd(id).Error.Message)
	require.Equal(t, 3, w.agentRuns())
	require.Contains(t, w.runs()[0]+w.runs()[1], `"tokens":100,"timeMs":3600000`)

	flow, schema := testWorkflow(&protocol.Limits{MaxTokens: 50})
	w.workflow = w.put(flow, schema)
	prosetest.Text(t, w.untilEnd(w.start()).Error.Message)

	own, err := w.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "x", Cwd: w.dir}, StartOptions{Limits: protocol.Limits{MaxTokens: 10}})
	require.NoError(t, err)
	prosetest.Text(t, w.untilEnd(own).Error.Message)
	_, err = w.Grant(ctx, own, protocol.Limits{MaxTokens: 70}, budget.More{})
	require.NoError(t, err)
	prosetest.Text(t, w.untilEnd(own).Error.Message)
	lines, err := w.Grant(ctx, own, protocol.Limits{}, budget.More{Amount: protocol.Amount{Tokens: 5}})
	require.NoError(t, err)
	prosetest.Text(t, lines)
	prosetest.Text(t, w.untilEnd(own).Error.Message)

	timed, err := w.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "x", Cwd: w.dir}, StartOptions{Limits: protocol.Limits{MaxTokens: 1000, MaxTimeMs: 1}})
	require.NoError(t, err)
	w.plays("!cost:again/?/1/50")
	prosetest.Text(t, w.untilEnd(timed).Error.Message)
}

// An unknown cost isn't counted as zero.
func TestUnknownIsNeverNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newBoundedWorld(t, "!cost:again/?/40", protocol.Limits{MaxCostUSD: 1})
	id := w.start()
	out := w.untilEnd(id)
	prosetest.Text(t, out.Error.Message)
	require.Equal(t, 1, w.agentRuns())
	lines, err := w.Grant(ctx, id, protocol.Limits{}, budget.More{Again: true})
	require.NoError(t, err)
	prosetest.Text(t, lines)
	prosetest.Text(t, w.untilEnd(id).Error.Message)
	require.Equal(t, 2, w.agentRuns())

	// A token limit bounds the run instead if the tokens are known.
	_, err = w.Grant(ctx, id, protocol.Limits{MaxTokens: 100}, budget.More{})
	require.NoError(t, err)
	prosetest.Text(t, w.untilEnd(id).Error.Message)
	w.plays("!cost:again/?/?")
	_, err = w.Grant(ctx, id, protocol.Limits{}, budget.More{Amount: protocol.Amount{Tokens: 1000}})
	require.NoError(t, err)
	prosetest.Text(t, w.untilEnd(id).Error.Message)
}

// A fork counts only its own cost, and inherits the limits of its source.
func TestAForkCountsItsOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!cost:again/0.4/10")
	id, err := w.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "x", Cwd: w.dir}, StartOptions{Limits: protocol.Limits{MaxCostUSD: 1}})
	require.NoError(t, err)
	w.untilEnd(id)
	fork, err := w.Fork(ctx, w.head(id), ForkOptions{})
	require.NoError(t, err)
	require.Zero(t, w.spent(fork))
	w.mustStep(fork, StepOptions{})
	require.InDelta(t, 0.4, w.spent(fork).CostUSD, 1e-9)
	require.NoError(t, os.RemoveAll(w.Reader.RunDir(fork).Path))
	require.InDelta(t, 0.4, w.spent(fork).CostUSD, 1e-9)
	prosetest.Text(t, w.untilEnd(fork).Error.Message)
	require.Equal(t, 6, w.agentRuns())
}

// Replaced steps count.
func TestReplacedStepsCount(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newBoundedWorld(t, "!cost:again/0.4/10", protocol.Limits{MaxCostUSD: 1})
	id := w.start()
	w.mustStep(id, StepOptions{})
	for want := 0.8; want < 1.3; want += 0.4 {
		_, err := w.Poke(ctx, id, "better", StepOptions{})
		require.NoError(t, err)
		require.InDelta(t, want, w.spent(id).CostUSD, 1e-9)
	}
	prosetest.Text(t, w.untilEnd(id).Error.Message)
	fork, err := w.Fork(ctx, w.head(id), ForkOptions{})
	require.NoError(t, err)
	require.Zero(t, w.spent(fork))
}

// A run with a dollar limit is refused before it starts if its cost won't be known.
func TestARunWithoutAPriceIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "")
	w.config = protocol.Config{
		DefaultAgent: "own", DefaultModel: "m",
		Agents:    map[string]protocol.Agent{"own": {Command: "uwf-builtin"}},
		Models:    map[string]protocol.Model{"m": {Provider: "p", Name: "n"}},
		Providers: map[string]protocol.Provider{"p": {BaseURL: "https://example.org/v1"}},
	}
	flow, _ := testWorkflow(nil)
	var said []string
	w.onWarning(func(text string) { said = append(said, text) })
	check := func(l protocol.Limits) error { return w.CheckBudget(ctx, flow, l, StepOptions{}) }
	e := requireCode(t, check(protocol.Limits{MaxCostUSD: 5}), protocol.CodeInvalid)
	require.Contains(t, hints.All("", e)[0], "uwf config set models.m.price.input 3")
	require.NotEmpty(t, hints.All("", e))
	require.NoError(t, check(protocol.Limits{MaxTokens: 5}))
	require.Empty(t, said)
	require.NoError(t, check(protocol.Limits{MaxCostUSD: 5, MaxTokens: 5}))
	require.Len(t, said, 2, "each role")
	prosetest.Text(t, said[0])
	w.config.Models["m"] = protocol.Model{Provider: "p", Name: "n", Price: &protocol.Price{Input: 1, Output: 2}}
	require.NoError(t, check(protocol.Limits{MaxCostUSD: 5}))

	id, err := w.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "x", Cwd: w.dir}, StartOptions{Limits: protocol.Limits{MaxCostUSD: 5}})
	require.NoError(t, err)
	w.config.Models["m"] = protocol.Model{Provider: "p", Name: "n"}
	_, err = w.Step(ctx, id, StepOptions{})
	requireCode(t, err, protocol.CodeInvalid)
}

// Whenever the engine is killed, the total is kept and no further agent is run.
func TestBudgetsHoldUnderKills(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		w := newBoundedWorld(t, "!cost:again/0.4/10", protocol.Limits{MaxCostUSD: 1})
		id := w.start()
		w.mustStep(id, StepOptions{})
		killed := w.killedAtChange(n, w.engineProcess(id, "!cost:again/0.4/10"))
		w.eventually("the agent has ended", func() bool { return !w.Reader.RunDir(id).Alive(w.Reader.RunDir(id).Read()) })
		out := w.untilEnd(id)
		require.Equal(t, protocol.StatusSuspended, out.Status, "killed at change %d", n)
		require.InDelta(t, 1.2, w.spent(id).CostUSD, 1e-9, "killed at change %d", n)
		require.LessOrEqual(t, w.agentRuns(), 3, "killed at change %d", n)
		if !killed {
			return
		}
	}
}
