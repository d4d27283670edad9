package moderator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// Roles can lack a description. A part gets its own prompt, that of the edge, its role's description or the
// task.
func TestRolesWithoutDescription(t *testing.T) {
	t.Parallel()
	to := func(edge protocol.Edge) protocol.GraphNode {
		return protocol.GraphNode{Edges: map[string]protocol.Edge{protocol.DefaultStatus: edge}}
	}
	w := protocol.Workflow{
		Roles: map[string]protocol.Role{
			"command": {Run: []string{"make"}}, "person": {Person: true}, "agent": {}, "told": {Description: "Looks."},
			"other": {Workflow: "0000000000001"},
			"parts": {All: map[string]protocol.ChildRole{
				"a": {Role: "told"}, "b": {Role: "command"}, "c": {Role: "told", Prompt: "Mine."}, "d": {Workflow: "0000000000001"},
			}},
		},
	}
	next := func(edge protocol.Edge) (moderator.Decision, error) {
		w.Graph = map[string]protocol.GraphNode{protocol.StartNode: to(edge)}
		return moderator.Next(t.Context(), moderator.State{Workflow: w, Start: protocol.Start{Prompt: "task"}})
	}
	told := func(edge protocol.Edge) map[string]string {
		d, err := next(edge)
		require.NoError(t, err)
		prompts := map[string]string{}
		for _, c := range d.Children {
			prompts[c.Key] = c.Prompt
		}
		return prompts
	}
	d, err := next(protocol.Edge{Role: "command"})
	require.NoError(t, err)
	require.Equal(t, []string{"make"}, d.Command)
	require.Empty(t, d.Prompt)
	require.Equal(t, map[string]string{"a": "Looks.", "b": "task", "c": "Mine.", "d": "task"}, told(protocol.Edge{Role: "parts"}))
	require.Equal(t, map[string]string{"a": "edge", "b": "edge", "c": "Mine.", "d": "edge"}, told(protocol.Edge{Role: "parts", Prompt: "edge"}))
	require.Equal(t, map[string]string{"other": "task"}, told(protocol.Edge{Role: "other"}))
	for _, role := range []string{"agent", "person"} {
		_, err := next(protocol.Edge{Role: role})
		require.ErrorIs(t, err, moderator.ErrNoPrompt, role)
	}
}
