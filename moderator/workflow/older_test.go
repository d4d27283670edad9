package workflow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
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

// nodes are what the store holds for the older form.
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
	require.Equal(t, []string{
		"solve-issue.yaml is written in the older form of workflows; it is read and stored in the present one, which `uwf workflow show solve-issue --format yaml` prints",
		`who plays a role is configuration, so defaultAgent and agentOverrides are left out; these lines in config.yaml do the same:
agents:
  hermes: {command: uwf-hermes}
  cursor: {command: bunx, args: [uwf-cursor, "--fast"]}
agentOverrides:
  solve-issue:
    planner: hermes
    developer: cursor
    reviewer: hermes`,
	}, def.Notices)
}

func TestPresentFormHasNoNotices(t *testing.T) {
	t.Parallel()
	def, err := parse(base(t))
	require.NoError(t, err)
	require.NotContains(t, strings.Join(def.Notices, "\n"), "older form")
}

// Agents of the same name that are started in different ways stay apart.
func TestOlderAgentsGetDifferentAliases(t *testing.T) {
	t.Parallel()
	def, err := olderFile("bunx uwf-cursor --fast", "/opt/my agents/uwf-hermes")
	require.NoError(t, err)
	require.Contains(t, def.Notices[1], "  hermes: {command: uwf-hermes}\n  hermes-2: {command: \"/opt/my\", args: [\"agents/uwf-hermes\"]}\n")
	def, err = olderFile("defaultAgent: uwf-hermes\n", "", "agentOverrides:\n  developer: bunx uwf-cursor --fast\n", "")
	require.NoError(t, err)
	require.Len(t, def.Notices, 1)
}

func TestOlderFormProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		edits []string
		want  []string
	}{
		{"a misspelt target", []string{"{to: reviewer}", "{to: reviwer}"},
			[]string{`18:3: no path leads from $START to role "reviewer" → let an edge lead to it, or remove it`,
				`29:26: graph[developer][0] leads to "reviwer", but there is no such role → did you mean "reviewer"?`}},
		{"a key that is none", []string{"from: developer", "form: developer"},
			[]string{`28:7: a node of the graph has no key "form" → did you mean "from"?`}},
		{"no transitions", []string{"      transitions: [{to: reviewer}]\n", ""},
			[]string{`28:7: a node of the graph has no "transitions" → add "transitions": a list of {to: …, condition: …}`}},
		{"two nodes from one role", []string{"    - from: developer", "    - {from: planner, transitions: [$END]}\n    - from: developer"},
			[]string{`28:14: the graph has two nodes from "planner" → put its transitions into one list`}},
		{"a graph that is none", []string{"moderator:\n", "moderator: x\nlimits: {}\nmoderator2:\n"},
			[]string{`19:12: moderator must be a mapping with a graph, but this is the text "x" → moderator: {graph: [{from: …, transitions: […]}]}`,
				`21:1: the workflow has no key "moderator2" → the keys here are "name", "description", "roles", "conditions", "graph", "limits", "inputs"`}},
		{"two graphs", []string{"moderator:\n", "graph: {$START: {_: planner}, planner: {_: developer}, developer: {_: reviewer}, reviewer: {_: $END}}\nmoderator:\n"},
			[]string{`20:1: the workflow has both "graph" and "moderator", which mean the same → keep one of them`}},
		{"another name", []string{"name: developer", "name: coder"},
			[]string{`13:11: role "developer" has the name "coder"`}},
		{"an agent for nobody", []string{"  developer: bunx", "  developr: bunx"},
			[]string{`36:3: agentOverrides names "developr", but there is no such role → did you mean "developer"?`}},
		{"a node that is not there", []string{"5GWKR8TN1V3JA", "6GWKR8TN1V3JA"},
			[]string{`17:19: cannot read node 6GWKR8TN1V3JA: no such node → write out what it refers to`}},
		{"bad syntax", []string{"meta.approved = false", "meta.approved = "},
			[]string{`32:53: condition of graph[reviewer][0]: the expression ends where an operand should follow`}},
		{"goal and systemPrompt", []string{"    procedure: Test first.", "    goal: x"},
			[]string{`15:5: role "developer" has both "goal" and "systemPrompt" → keep one of them`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := olderFile(tt.edits...)
			require.Equal(t, tt.want, told(t, err))
		})
	}
	_, err := workflow.Parse(workflow.Source{Data: []byte(older)})
	require.ErrorContains(t, err, "cannot read node 5GWKR8TN1V3JA: there is no store to look in")
}
