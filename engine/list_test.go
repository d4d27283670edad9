//go:build unix

package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// listWorkflow returns a workflow with one role that repeats while a condition holds.
func listWorkflow(condition string) (protocol.Workflow, map[string]any) {
	w, schema := testWorkflow(&protocol.Limits{MaxSteps: 1 << 20, MaxVisitsPerRole: 1 << 20})
	if strings.Contains(condition, protocol.StepsVariable) {
		w.Language = protocol.Language3
	}
	w.Conditions = map[string]protocol.Condition{"again": {Expression: condition}}
	w.Graph["planner"] = protocol.GraphNode{Transitions: []protocol.Transition{
		{Edge: protocol.Edge{Role: "planner", Prompt: "Once more."}, Condition: "again"},
		{Edge: protocol.Edge{Role: "$END"}},
	}}
	return w, schema
}

// A condition reads only the part of the thread that it needs.
func TestConditionsReadWhatTheyAskFor(t *testing.T) {
	t.Parallel()
	for condition, perStep := range map[string]int64{
		"meta.`$status` = 'again'":             0,
		"steps[-1].output.`$status` = 'again'": 0,
		"$count(history) > 0":                  1, // all have the same output
		"$steps.planner.`$status` = 'again'":   0,
		"$not($exists($steps.nobody))":         0,
	} {
		w := newWorld(t, "again")
		w.workflow = w.put(listWorkflow(condition))
		counts := map[int]int64{}
		lengths := []int{10, 5000}
		if perStep > 0 {
			lengths[1] = 60
		}
		for _, length := range lengths {
			id := w.start()
			w.lengthen(id, length)
			counting := &countingStore{Store: w.Reader.Store}
			e := *w.Engine
			e.Reader.Store = counting
			out, err := e.Step(context.Background(), id, StepOptions{})
			require.NoError(t, err)
			require.Equal(t, "planner", string(out.CurrentRole), condition)
			counts[length] = counting.gets.Load()
		}
		// The condition is evaluated before and after the step, but nothing is read twice.
		require.Equal(t, perStep*int64(lengths[1]-lengths[0]), counts[lengths[1]]-counts[lengths[0]], condition)
	}
}

func TestListsRouteToTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again,again,done")
	w.workflow = w.put(listWorkflow("depth < 3 and start.prompt != '' and $count(history[role = 'planner']) = depth"))
	id := w.start()
	require.Equal(t, "planner", string(w.mustStep(id, StepOptions{}).CurrentRole))
	require.Equal(t, "planner", string(w.mustStep(id, StepOptions{}).CurrentRole))
	require.True(t, w.mustStep(id, StepOptions{}).Done)
}

// If no condition holds, the thread is stuck, and the error contains the unexpected value.
func TestListWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	put, schema := listWorkflow("meta.nothing")
	put.Graph["planner"] = protocol.GraphNode{Transitions: put.Graph["planner"].Transitions[:1]}
	w.workflow = w.put(put, schema)
	id := w.start()
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusError, out.Status)
	require.Equal(t, protocol.CodeInvalid, out.Error.Code)
	prosetest.Text(t, out.Error.Message)
	require.Contains(t, out.Error.Message, `meta is {"$status":"again",`)
}
