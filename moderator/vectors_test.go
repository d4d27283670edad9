package moderator_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/promptquote"
)

// vector is one evaluation made by the original system.
type vector struct {
	Name       string                              `json:"name"`
	Graph      map[string]map[string]protocol.Edge `json:"graph"`
	LastRole   string                              `json:"lastRole"`
	LastOutput any                                 `json:"lastOutput"`
	OK         bool                                `json:"ok"`
	Result     *struct {
		Action        string  `json:"action"`
		Role          string  `json:"role"`
		SuspendedRole string  `json:"suspendedRole"`
		Prompt        string  `json:"prompt"`
		Location      *string `json:"location"`
	} `json:"result"`
}

// deviations lists the vectors where uwf deliberately differs. want is the expected error, or "" if uwf takes
// the edge "_".
var deviations = map[string]struct{ reason, want string }{
	"start with missing var renders empty": {
		"a missing variable is an error that names it, not a hole in the prompt",
		`graph[$START][_]: prompt:1:7: variable "task" does not exist; known: "$prompt", "$status", "prompt" (template: "Plan: {{task}}.")`},
	"location missing var -> empty string": {
		"an agent must not be started in a directory without a name",
		`graph[planner][ready]: location:1:1: variable "dir" does not exist; known: "$prompt", "$status", "plan", "prompt" (template: "{{dir}}")`},
	"location template resolves to empty": {
		"as above",
		`graph[blankloc][_]: location:1:1: variable "nothing" does not exist; known: "$prompt", "$status", "prompt" (template: "{{nothing}}")`},
	"suspend with empty prompt var": {
		"a missing variable is an error that names it",
		`graph[planner][insufficient_info]: prompt:1:7: variable "question" does not exist; known: "$prompt", "$status", "prompt" (template: "Need: {{question}}")`},
	"mustache: partial": {
		"a template reads nothing but its values; a partial would vanish in silence",
		`graph[r][_]: prompt:1:2: partials ({{> p}}) are not supported (template: "x{{> p}}y")`},
	"$status 'toString'":                  {"a status that has no edge of its own takes the edge _, whatever it is called", ""},
	"$status prototype key 'constructor'": {"as above", ""},
}

func TestVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/moderator.json")
	require.NoError(t, err)
	var vectors []vector
	require.NoError(t, json.Unmarshal(data, &vectors))
	require.NotEmpty(t, vectors)
	met := 0
	for _, v := range vectors {
		deviation, deviates := deviations[v.Name]
		if deviates {
			met++
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			got, err := moderator.Next(t.Context(), v.state())
			switch {
			case deviates && deviation.want == "":
				require.NoError(t, err)
				require.Equal(t, protocol.DefaultStatus, got.Status, deviation.reason)
			case deviates:
				require.EqualError(t, err, deviation.want, deviation.reason)
			case !v.OK:
				require.Error(t, err)
			default:
				require.NoError(t, err)
				got.Prompt = promptquote.Plain(got.Prompt) // a value at the start of a line is fenced
				require.Equal(t, v.want(), got)
			}
		})
	}
	require.Equal(t, len(deviations), met, "every deviation has its vector")
}

// state converts the vector to a thread. The original's graphs contain undefined roles; here every target is
// a role.
func (v vector) state() moderator.State {
	w := protocol.Workflow{Roles: map[string]protocol.Role{}, Graph: map[string]protocol.GraphNode{}}
	for node, edges := range v.Graph {
		w.Graph[node] = protocol.GraphNode{Edges: edges}
		for _, e := range edges {
			if e.Role != protocol.EndNode && e.Role != protocol.SuspendNode {
				w.Roles[e.Role] = protocol.Role{}
			}
		}
	}
	return moderator.State{Workflow: w, Last: &moderator.Last{Role: v.LastRole, Output: v.LastOutput}}
}

// want converts the original's result to a decision.
func (v vector) want() moderator.Decision {
	d := moderator.Decision{Kind: moderator.Run, Role: v.Result.Role, Prompt: v.Result.Prompt, Status: v.status()}
	switch {
	case v.Result.Action == "suspend":
		d.Kind, d.Role, d.Cause = moderator.Suspend, v.Result.SuspendedRole, moderator.ByTarget
	case v.Result.Role == protocol.EndNode:
		d.Kind, d.Role = moderator.End, ""
	}
	if v.Result.Location != nil {
		d.Location = *v.Result.Location
	}
	return d
}

// status returns the edge that the original took; its default is "_".
func (v vector) status() string {
	object, _ := v.LastOutput.(map[string]any)
	status, ok := object["$status"].(string)
	if !ok || v.LastRole == protocol.StartNode {
		return "_"
	}
	return status
}
