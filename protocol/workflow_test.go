package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestGraphNodeKeepsItsForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]protocol.GraphNode{
		`{"_":{"role":"a"}}`: {Edges: map[string]protocol.Edge{"_": {Role: "a"}}},
		`{"done":{"role":"$END","prompt":"p","location":"l"}}`: {Edges: map[string]protocol.Edge{"done": {Role: "$END", Prompt: "p", Location: "l"}}},
		`[{"role":"a","condition":"c"},{"role":"$END"}]`:       {Transitions: []protocol.Transition{{Edge: protocol.Edge{Role: "a"}, Condition: "c"}, {Edge: protocol.Edge{Role: "$END"}}}},
		`{}`: {Edges: map[string]protocol.Edge{}},
		`[]`: {Transitions: []protocol.Transition{}},
	} {
		var n protocol.GraphNode
		require.NoError(t, json.Unmarshal([]byte(text), &n))
		require.Equal(t, want, n)
		out, err := json.Marshal(n)
		require.NoError(t, err)
		require.Equal(t, text, string(out))
	}
	var n protocol.GraphNode
	require.NoError(t, json.Unmarshal([]byte(`{"_":{"role":"a","prompt":null,"location":null}}`), &n), "as the original stores it")
	require.Equal(t, protocol.Edge{Role: "a"}, n.Edges["_"])
	require.Error(t, json.Unmarshal([]byte(`"a"`), &n))
}

func TestWorkflowValidate(t *testing.T) {
	t.Parallel()
	valid := func() protocol.Workflow {
		return protocol.Workflow{
			Roles: map[string]protocol.Role{"a": {Capabilities: []string{}, Frontmatter: "0000000000001"}},
			Graph: map[string]protocol.GraphNode{},
		}
	}
	require.NoError(t, valid().Validate())
	for want, breakIt := range map[string]func(*protocol.Workflow){
		"roles and graph are required": func(w *protocol.Workflow) { w.Graph = nil },
		`frontmatter "x" is not a hash`: func(w *protocol.Workflow) {
			w.Roles["a"] = protocol.Role{Capabilities: []string{}, Frontmatter: "x"}
		},
		"capabilities must be a list": func(w *protocol.Workflow) { w.Roles["a"] = protocol.Role{Frontmatter: "0000000000001"} },
		"limits cannot be negative":   func(w *protocol.Workflow) { w.Limits = &protocol.Limits{MaxSteps: -1} },
	} {
		w := valid()
		breakIt(&w)
		require.ErrorContains(t, w.Validate(), want)
	}
}
