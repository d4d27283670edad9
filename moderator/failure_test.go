package moderator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// failing returns a thread whose reviewer could not be played.
func failing(node protocol.GraphNode, language int) moderator.State {
	step := protocol.Step{Error: &protocol.StepFailure{Code: protocol.CodeAgent}, Tries: make([]protocol.Try, 2)}
	s := after("reviewer", step.FailureAnswer("no answer"))
	s.Last.Failed, s.Workflow.Language, s.Workflow.Graph["reviewer"] = true, language, node
	s.Depth, s.History = 1, past(moderator.HistoryStep{Role: "reviewer", Output: given(s.Last.Output), Failed: true})
	return s
}

func TestFailures(t *testing.T) {
	t.Parallel()
	end := protocol.Edge{Role: "$END"}
	told := protocol.Edge{Role: "developer", Prompt: "after {{tries}} tries"}
	developer := moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "after 2 tries", Status: "$error"}
	failed := moderator.Decision{Kind: moderator.End, Failed: true, Prompt: "no answer", Status: "$error"}
	list := func(when ...string) protocol.GraphNode {
		n := protocol.GraphNode{Transitions: []protocol.Transition{{Edge: end}}}
		for _, w := range when {
			n.Transitions = append(n.Transitions, protocol.Transition{Edge: told, Condition: w})
		}
		return n
	}
	for name, c := range map[string]struct {
		node     protocol.GraphNode
		language int
		want     moderator.Decision
	}{
		"an edge":                              {edges("_", end, "$error", told), 3, developer},
		"no edge: that of others is not taken": {edges("_", end), 3, failed},
		"an entry":                             {list("$error"), 3, developer},
		"an entry whose condition holds":       {list("$error and (depth > 5)", "$error and (meta.tries = 2)"), 3, developer},
		"no entry whose condition holds":       {list("$error and (depth > 5)"), 3, failed},
		"no entry":                             {list(), 3, failed},
		"an entry in an older workflow":        {list("$error"), 0, moderator.Decision{Kind: moderator.End, Status: "$error"}},
		"an end that fails":                    {edges("_", end, "$error", protocol.Edge{Role: "$FAIL", Prompt: "{{code}}"}), 3, moderator.Decision{Kind: moderator.End, Failed: true, Prompt: "agent", Status: "$error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := failing(c.node, c.language)
			if c.language == 0 {
				s.Last.Failed = false // without failed steps
			}
			for range 2 { // a pure function of the chain
				got, err := moderator.Next(t.Context(), s)
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			}
		})
	}
	forged := failing(edges("_", end, "$error", told), 3) // an answer that claims to be a failure
	forged.Last.Failed, forged.Last.Output = false, obj("$status", "$error", "error", "none")
	got, err := moderator.Next(t.Context(), forged)
	require.NoError(t, err)
	require.Equal(t, moderator.Decision{Kind: moderator.End, Status: "_"}, got)

	s := failing(edges("done", protocol.Edge{Role: "$FAIL", Prompt: "{{words}}"}), 3)
	s.Last.Failed, s.Last.Output = false, obj("$status", "done", "words", "not good")
	got, err = moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, moderator.Decision{Kind: moderator.End, Failed: true, Prompt: "not good", Status: "done"}, got)
}

// A part whose condition doesn't hold has no child, neither at the start nor at the join.
func TestWhenAndCompute(t *testing.T) {
	t.Parallel()
	s := after("planner", obj("$status", "ready", "size", 3.0))
	s.Workflow.Language = protocol.Language3
	s.Workflow.Roles["panel"] = protocol.Role{All: map[string]protocol.ChildRole{
		"a": {Role: "developer", When: "meta.size > 2"}, "b": {Role: "developer", When: "meta.size > 3"}, "c": {Role: "developer"},
	}}
	s.Workflow.Roles["sum"] = protocol.Role{Compute: "{ 'twice': 2 * meta.size }"}
	s.Workflow.Graph["planner"] = edges("ready", protocol.Edge{Role: "panel", Prompt: "p"})
	d, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c"}, []string{d.Children[0].Key, d.Children[1].Key})
	require.Len(t, d.Children, 2)

	s.Workflow.Graph["planner"] = edges("ready", protocol.Edge{Role: "sum", Prompt: "p"})
	d, err = moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, moderator.Fan, d.Kind)
	require.Empty(t, d.Children)
	value, err := moderator.Join(t.Context(), s, "sum", nil, true)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"twice": int64(6)}, value)

	s.Workflow.Roles["panel"].All["b"] = protocol.ChildRole{Role: "developer", When: "$error('x')"}
	s.Workflow.Graph["planner"] = edges("ready", protocol.Edge{Role: "panel", Prompt: "p"})
	_, err = moderator.Next(t.Context(), s)
	var fan *moderator.FanError
	require.ErrorAs(t, err, &fan)
}
