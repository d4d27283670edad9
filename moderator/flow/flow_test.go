package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
)

func edges(pairs ...string) protocol.GraphNode {
	m := map[string]protocol.Edge{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = protocol.Edge{Role: pairs[i+1]}
	}
	return protocol.GraphNode{Edges: m}
}

func roles(names ...string) map[string]protocol.Role {
	m := map[string]protocol.Role{}
	for _, n := range names {
		m[n] = protocol.Role{}
	}
	return m
}

func TestRolesComeAsTheyAreReached(t *testing.T) {
	t.Parallel()
	w := protocol.Workflow{
		Roles: roles("z", "a", "m", "lost", "adrift"),
		Graph: map[string]protocol.GraphNode{
			"$START": edges("resume", "a", "_", "z"),
			"z":      edges("ok", "m", "bad", "$SUSPEND"),
			"m":      {Transitions: []protocol.Transition{{Edge: protocol.Edge{Role: "z"}, Condition: "c"}, {Edge: protocol.Edge{Role: "$END"}}}},
			"a":      edges("_", "nobody"),
		},
	}
	require.Equal(t, []string{"z", "a", "m", "adrift", "lost"}, flow.Roles(w))
	require.Empty(t, flow.Roles(protocol.Workflow{}))
}

func TestLabelsSayWhenAWayIsTaken(t *testing.T) {
	t.Parallel()
	always := protocol.Transition{Edge: protocol.Edge{Role: "$END"}}
	when := protocol.Transition{Edge: protocol.Edge{Role: "a"}, Condition: "tired"}
	w := protocol.Workflow{Graph: map[string]protocol.GraphNode{
		"$START": edges("new", "a", "resume", "b"),
		"one":    edges("_", "a"),
		"map":    edges("zeal", "a", "new", "b", "_", "c"),
		"list":   {Transitions: []protocol.Transition{when, always}},
		"alone":  {Transitions: []protocol.Transition{always}},
	}}
	for node, want := range map[string][]string{
		"$START": {"", "resume"}, "one": {""}, "map": {"", "new", "zeal"},
		"list": {"1. tired", "2. otherwise"}, "alone": {""}, "none": nil,
	} {
		var got []string
		for _, way := range flow.Ways(w, node) {
			require.Equal(t, node, way.From)
			got = append(got, way.Label())
		}
		require.Equal(t, want, got, node)
	}
}
