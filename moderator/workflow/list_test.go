package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// lists is an example from the seeds: a graph of lists with a named condition.
const lists = head + `  planner: {description: Plans, goal: g, capabilities: [], procedure: p, output: o, meta: {type: object, properties: {plan: {type: string}}}}
  reviewer:
    description: Reviews
    goal: g
    capabilities: []
    procedure: p
    output: o
    meta:
      oneOf:
        - {properties: {$status: {const: good}, approved: {type: boolean}}}
        - {properties: {approved: {type: boolean}, comments: {type: string}}}
conditions:
  notApproved:
    description: The reviewer rejected it
    expression: "steps[-1].output.approved = false"
  late: depth > 5
graph:
  $START:
    - planner
  planner:
    _: reviewer
  reviewer:
    - {to: planner, condition: notApproved, prompt: "Again: {{comments}}", location: "{{plan}}"}
    - {role: $SUSPEND, condition: "meta.approved != true", prompt: "{{$prompt}}"}
    - {role: $END, condition: null}
`

// listed parses lists with edits and without its wrong location.
func listed(edits ...string) (workflow.Definition, error) {
	text := lists
	edits = append([]string{`, location: "{{plan}}"`, ""}, edits...)
	for i := 0; i < len(edits); i += 2 {
		text = replaceOnce(text, edits[i], edits[i+1])
	}
	return workflow.Parse(workflow.Source{File: "x.yaml", Data: []byte(text)})
}

func TestLists(t *testing.T) {
	t.Parallel()
	def, err := listed()
	require.NoError(t, err)
	require.Equal(t, map[string]protocol.Condition{
		"notApproved": {Description: "The reviewer rejected it", Expression: "steps[-1].output.approved = false"},
		"late":        {Expression: "depth > 5"},
	}, def.Conditions)
	require.Equal(t, map[string]protocol.GraphNode{
		"$START":  {Transitions: []protocol.Transition{{Edge: protocol.Edge{Role: "planner"}}}},
		"planner": {Edges: map[string]protocol.Edge{"_": {Role: "reviewer"}}},
		"reviewer": {Transitions: []protocol.Transition{
			{Edge: protocol.Edge{Role: "planner", Prompt: "Again: {{comments}}"}, Condition: "notApproved"},
			{Edge: protocol.Edge{Role: "$SUSPEND", Prompt: "{{$prompt}}"}, Condition: "meta.approved != true"},
			{Edge: protocol.Edge{Role: "$END"}},
		}},
	}, def.Graph)

	_, err = listed("    - {role: $END, condition: null}\n", "    - {role: $END, condition: meta.approved}\n")
	require.NoError(t, err, "a list need not end with an entry that is always taken")
	_, err = listed("    - planner\n", "    - {role: planner, condition: '$contains(start.prompt, \"x\")'}\n    - {role: reviewer}\n")
	require.NoError(t, err, "a start may have conditions")
}

func TestListProblems(t *testing.T) {
	t.Parallel()
	const end = "{role: $END, condition: null}"
	tests := []struct {
		name  string
		edits []string
	}{
		{"no list without an entry", []string{"    - planner\n", "    []\n"}},
		{"an entry that is nothing", []string{"    - planner\n", "    -\n    - planner\n"}},
		{"an entry without a role", []string{end, "{condition: null}"}},
		{"role and to", []string{end, "{role: $END, to: $END}"}},
		{"a key that is none", []string{end, "{role: $END, conditon: x}"}},
		{"a target that is none", []string{"to: planner", "to: planer"}},
		{"a condition that is not text", []string{end, "{role: $END, condition: true}"}},
		{"a blank condition", []string{end, `{role: $END, condition: " "}`}},
		{"a misspelt condition", []string{"condition: notApproved", "condition: notAproved"}},
		{"a condition that is a field of the answer", []string{"condition: notApproved", "condition: approved"}},
		{"a condition with dashes", []string{"condition: notApproved", "condition: is-late"}},
		{"what is never taken", []string{"    - planner\n", "    - planner\n    - {role: reviewer, condition: late}\n"}},
		{"a field that no answer has", []string{"{{comments}}", "{{coments}}"}},
		{"bad syntax", []string{`"meta.approved != true"`, `"meta.approved !!"`}},
		{"bad syntax in a block", []string{"late: depth > 5", "late: |\n    depth >\n      (5 + "}},
		{"a part of JSONata that is left out", []string{"late: depth > 5", "late: 'role = ''x'' and $now() > meta.until'"}},
		{"a field that needs backquotes", []string{"meta.approved != true", "meta.$status = 'good'"}},
		{"a field without its meta", []string{"meta.approved != true", "not_yet or approved = false"}},
		{"a field that the answer does not have", []string{"meta.approved != true", "meta.aproved or output.x or $exists(meta.y) or $exists(meta.coments)"}},
		{"conditions that are no mapping", []string{"  notApproved:\n    description: The reviewer rejected it\n    expression: \"steps[-1].output.approved = false\"\n  late: depth > 5\n", "  [a]\n", "condition: notApproved", "condition: meta"}},
		{"a condition without an expression", []string{"    expression: \"steps[-1].output.approved = false\"\n", ""}},
		{"a condition that says nothing", []string{"late: depth > 5", "late:"}},
		{"a key in a condition", []string{"    description: The", "    descripton: The"}},
		{"no way to the end", []string{end, "{role: planner}"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := listed(tt.edits...)
			prosetest.Text(t, problemLines(t, err))
		})
	}
}

// A role whose node is a list needs no $status in its schema, and its prompts can use the fields of all its
// answers.
func TestVariantsWithoutStatus(t *testing.T) {
	t.Parallel()
	_, err := workflow.Parse(workflow.Source{File: "x.yaml", Data: []byte(lists)})
	prosetest.Text(t, problemLines(t, err))
}
