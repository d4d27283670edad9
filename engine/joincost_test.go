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

// What the failed tries of a child have cost stays with its parent, also if it was cancelled before a step held them.
func TestJoinCostsFailedTries(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	rev := protocol.ChildRole{Role: "rev"}
	wf := statustest.Line(map[string]protocol.Role{"panel": {All: map[string]protocol.ChildRole{"a": rev, "b": rev}, Join: "{'$status': 'again'}"}, "rev": {}}, "panel")
	wf.Limits = &protocol.Limits{MaxCostUSD: 9, MaxTokens: 999}
	id := w.Start(w.Workflow(wf), heads.Facts{})
	kids := w.StartKids(id)
	w.Step(kids["a"], protocol.Step{Role: "rev", Usage: statustest.Usage(0.25)}, statustest.Answer("ok"))
	w.End(kids["a"], protocol.StatusCompleted)
	tries := runfiles.Tries{}.Add(runfiles.Try{Try: protocol.Try{Agent: "pi", Error: "it broke", Usage: statustest.Usage(0.5), AtMs: 1}})
	require.NoError(t, w.RunDir(kids["b"]).KeepTries(tries))
	w.End(kids["b"], protocol.StatusCancelled)
	_, before, err := w.Spending(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 0.75, before.CostUSD)
	require.Equal(t, int64(20), before.Tokens)

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
	require.Equal(t, 0.5, *step.Children[1].Usage.CostUSD)
}
