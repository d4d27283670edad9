package workflow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

const older = `name: solve-issue
description: End-to-end issue resolution
roles:
  planner:
    description: Plans
    systemPrompt: You are a planner.
    extractPrompt: Extract the plan.
    outputSchema:
      $id: role-output-planner
      type: object
      properties: {needsClarification: {type: string}}
  developer:
    name: developer
    description: Implements code changes
    systemPrompt: You are a developer agent.
    procedure: Test first.
    outputSchema: {$ref: 5GWKR8TN1V3JA}
  reviewer: {$ref: 1VPBG9SM5E7WK}
moderator:
  graph:
    - from: "$START"
      transitions:
        - {to: planner, condition: null}
    - from: planner
      transitions:
        - {to: developer, condition: "$not($exists(meta.needsClarification))"}
        - {to: $END, condition: null}
    - from: developer
      transitions: [{to: reviewer}]
    - from: reviewer
      transitions:
        - {to: developer, condition: "meta.approved = false"}
        - {to: $END}
defaultAgent: uwf-hermes
agentOverrides:
  developer: bunx uwf-cursor --fast
`

// nodes returns stored nodes for the older form.
func nodes(h protocol.Hash) (any, error) {
	switch h {
	case "5GWKR8TN1V3JA":
		return map[string]any{"title": "developer", "type": "object", "properties": map[string]any{"summary": map[string]any{"type": "string"}}}, nil
	case "1VPBG9SM5E7WK":
		return map[string]any{
			"name": "reviewer", "description": "Reviews", "systemPrompt": "You review.", "extractPrompt": "Extract.",
			"outputSchema": map[string]any{"$ref": "0GWKR8TN1V3JA"},
		}, nil
	case "0GWKR8TN1V3JA":
		return map[string]any{"$id": "review", "type": "object", "properties": map[string]any{"approved": map[string]any{"type": "boolean"}}}, nil
	}
	return nil, errors.New("no such node")
}

func olderFile(edits ...string) (workflow.Definition, error) {
	text := older
	for i := 0; i < len(edits); i += 2 {
		text = replaceOnce(text, edits[i], edits[i+1])
	}
	return workflow.Parse(workflow.Source{File: "solve-issue.yaml", Data: []byte(text), Node: nodes})
}

func TestOlderForm(t *testing.T) {
	t.Parallel()
	def, err := olderFile()
	require.NoError(t, err)
	to := func(role, condition string) protocol.Transition {
		return protocol.Transition{Edge: protocol.Edge{Role: role}, Condition: condition}
	}
	require.Equal(t, protocol.Workflow{
		Name: "solve-issue", Description: "End-to-end issue resolution",
		Roles: map[string]protocol.Role{
			"planner":   {Description: "Plans", Goal: "You are a planner.", Capabilities: []string{}, ExtractPrompt: "Extract the plan."},
			"developer": {Description: "Implements code changes", Goal: "You are a developer agent.", Capabilities: []string{}, Procedure: "Test first."},
			"reviewer":  {Description: "Reviews", Goal: "You review.", Capabilities: []string{}, ExtractPrompt: "Extract."},
		},
		Graph: map[string]protocol.GraphNode{
			"$START":    {Transitions: []protocol.Transition{to("planner", "")}},
			"planner":   {Transitions: []protocol.Transition{to("developer", "$not($exists(meta.needsClarification))"), to("$END", "")}},
			"developer": {Transitions: []protocol.Transition{to("reviewer", "")}},
			"reviewer":  {Transitions: []protocol.Transition{to("developer", "meta.approved = false"), to("$END", "")}},
		},
	}, def.Workflow)
	require.Equal(t, "role-output-planner", def.Schemas["planner"].(map[string]any)["title"])
	require.Equal(t, "review", def.Schemas["reviewer"].(map[string]any)["title"])
	require.NotContains(t, def.Schemas["planner"], "$id")
	require.Contains(t, def.Schemas["developer"].(map[string]any)["properties"], "summary")
	prosetest.Text(t, def.Notices)
}

func TestPresentFormHasNoNotices(t *testing.T) {
	t.Parallel()
	def, err := parse(base(t))
	require.NoError(t, err)
	prosetest.Text(t, strings.Join(def.Notices, "\n"))
}

func TestOlderFormProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		edits []string
	}{
		{"a misspelt target", []string{"{to: reviewer}", "{to: reviwer}"}},
		{"a key that is none", []string{"from: developer", "form: developer"}},
		{"no transitions", []string{"      transitions: [{to: reviewer}]\n", ""}},
		{"two nodes from one role", []string{"    - from: developer", "    - {from: planner, transitions: [$END]}\n    - from: developer"}},
		{"a graph that is none", []string{"moderator:\n", "moderator: x\nlimits: {}\nmoderator2:\n"}},
		{"two graphs", []string{"moderator:\n", "graph: {$START: {_: planner}, planner: {_: developer}, developer: {_: reviewer}, reviewer: {_: $END}}\nmoderator:\n"}},
		{"another name", []string{"name: developer", "name: coder"}},
		{"a node that is not there", []string{"5GWKR8TN1V3JA", "6GWKR8TN1V3JA"}},
		{"bad syntax", []string{"meta.approved = false", "meta.approved = "}},
		{"goal and systemPrompt", []string{"    procedure: Test first.", "    goal: x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := olderFile(tt.edits...)
			prosetest.Text(t, problemLines(t, err))
		})
	}
	_, err := workflow.Parse(workflow.Source{Data: []byte(older)})
	prosetest.Error(t, err)
}
