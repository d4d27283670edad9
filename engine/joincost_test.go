package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// The cost of children's failed tries and replaced steps is added to the parent, even if no step holds it.
func TestJoinCostsWhatNoStepHolds(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	rev := protocol.ChildRole{Role: "rev"}
	wf := statustest.Line(map[string]protocol.Role{"panel": {All: map[string]protocol.ChildRole{"a": rev, "b": rev}, Join: "{'$status': 'again'}"}, "rev": {}}, "panel")
	wf.Limits = &protocol.Limits{MaxCostUSD: 9, MaxTokens: 999}
	id := w.Start(w.Workflow(wf), heads.Facts{})
	kids := w.StartChildren(id)
	w.Step(kids["a"], protocol.Step{Role: "rev", Usage: statustest.Usage(0.25)}, statustest.Answer("ok"))
	w.End(kids["a"], protocol.StatusCompleted)
	tries := runfiles.Tries{}.Add(runfiles.Try{Try: protocol.Try{Agent: "pi", Error: "it broke", Usage: statustest.Usage(0.5), AtMs: 1}})
	require.NoError(t, w.RunDir(kids["b"]).KeepTries(tries))
	w.End(kids["b"], protocol.StatusCancelled)
	replaced := heads.Replaced{Totals: &protocol.Totals{Usage: statustest.Usage(1), DurationMs: 5}}
	require.NoError(t, w.Heads.SetFacts(t.Context(), kids["a"], heads.Facts{Limits: &heads.Limits{Replaced: replaced}}))
	_, before, err := w.Spending(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 1.75, before.CostUSD)
	require.Equal(t, int64(30), before.Tokens)

	e := engine.Engine{Reader: w.Reader}
	_, err = e.Step(t.Context(), id, engine.StepOptions{})
	require.NoError(t, err)
	step, err := cas.Read[protocol.Step](t.Context(), w.Store, w.At(id))
	require.NoError(t, err)
	require.Len(t, step.Children, 2)
	_, after, err := w.Spending(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, before.CostUSD, after.CostUSD)
	require.Equal(t, before.Tokens, after.Tokens)
	require.Equal(t, 1.25, *step.Children[0].Usage.CostUSD)
	require.Equal(t, int64(1005), step.Children[0].Usage.DurationMs)
	require.Equal(t, 0.5, *step.Children[1].Usage.CostUSD)
}
