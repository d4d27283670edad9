package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
)

// lists is the seeds' example: a graph of lists, and a condition with a name.
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

// listed is lists with the edits applied, without its wrong location.
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
		want  []string
	}{
		{"no list without an entry", []string{"    - planner\n", "    []\n"},
			[]string{"22:5: graph[$START] is an empty list: nothing would follow → - {role: …}"}},
		{"an entry that is nothing", []string{"    - planner\n", "    -\n    - planner\n"},
			[]string{"22:5: graph[$START][0] leads nowhere → name the role that is next, or $END"}},
		{"an entry without a role", []string{end, "{condition: null}"},
			[]string{`28:7: graph[reviewer][2] has no "role" → add role: the role that is next, or $END`}},
		{"role and to", []string{end, "{role: $END, to: $END}"},
			[]string{`28:7: graph[reviewer][2] has both "role" and "to", which mean the same → keep one of them`}},
		{"a key that is none", []string{end, "{role: $END, conditon: x}"},
			[]string{`28:20: graph[reviewer][2] has no key "conditon" → did you mean "condition"?`}},
		{"a target that is none", []string{"to: planner", "to: planer"},
			[]string{`26:12: graph[reviewer][0] leads to "planer", but there is no such role → did you mean "planner"?`}},
		{"a condition that is not text", []string{end, "{role: $END, condition: true}"},
			[]string{`28:31: condition of graph[reviewer][2] must be a text, but this is the value true → put it in quotes: "true"`}},
		{"a blank condition", []string{end, `{role: $END, condition: " "}`},
			[]string{`28:31: condition of graph[reviewer][2] is blank → condition: null, or leave it out, for always`}},
		{"a misspelt condition", []string{"condition: notApproved", "condition: notAproved"},
			[]string{`26:32: graph[reviewer][0] has the condition "notAproved", which does not exist → did you mean "notApproved"?`}},
		{"a condition that is a field of the answer", []string{"condition: notApproved", "condition: approved"},
			[]string{`26:32: graph[reviewer][0] has the condition "approved", which does not exist → to ask for the field of the answer write meta.approved`}},
		{"a condition with dashes", []string{"condition: notApproved", "condition: is-late"},
			[]string{`26:32: graph[reviewer][0] has the condition "is-late", which does not exist → the conditions are "notApproved", "late"`}},
		{"what is never taken", []string{"    - planner\n", "    - planner\n    - {role: reviewer, condition: late}\n"},
			[]string{`23:7: graph[$START][1] is never taken: entry 0 before it has no condition → give entry 0 a condition, or move it to the end`}},
		{"a field that no answer has", []string{"{{comments}}", "{{coments}}"},
			[]string{`26:61: prompt of graph[reviewer][0]: variable "coments" does not exist: the frontmatter of "reviewer" has no such field → did you mean "comments"?`}},
		{"bad syntax", []string{`"meta.approved != true"`, `"meta.approved !!"`},
			[]string{`27:50: condition of graph[reviewer][1]: the operator "!" does not exist → write $not(…)`}},
		{"bad syntax in a block", []string{"late: depth > 5", "late: |\n    depth >\n      (5 + "},
			[]string{`21:10: condition "late": ")" is missing at the end of the expression`}},
		{"a part of JSONata that is left out", []string{"late: depth > 5", "late: 'role = ''x'' and $now() > meta.until'"},
			[]string{`19:27: condition "late": the JSONata of uwf has no $now (dates) → let the role put the time into its answer`}},
		{"a field that needs backquotes", []string{"meta.approved != true", "meta.$status = 'good'"},
			[]string{"27:41: condition of graph[reviewer][1]: the variable $status never has a value → a field whose name begins with $ is written in backquotes: `$status`"}},
		{"a field without its meta", []string{"meta.approved != true", "not_yet or approved = false"},
			[]string{
				`27:36: condition of graph[reviewer][1]: "not_yet" never has a value → the context has "depth", "history", "meta", "output", "role", "start", "steps"`,
				`27:47: condition of graph[reviewer][1]: "approved" never has a value → did you mean "meta.approved"?`}},
		{"a field that the answer does not have", []string{"meta.approved != true", "meta.aproved or output.x or $exists(meta.y) or $exists(meta.coments)"},
			[]string{
				`27:36: condition of graph[reviewer][1]: "meta.aproved" never has a value → did you mean "approved"?`,
				`27:52: condition of graph[reviewer][1]: "output.x" never has a value → the frontmatter of "reviewer" has "$status", "approved", "comments"`,
				`27:91: condition of graph[reviewer][1]: "meta.coments" never has a value → did you mean "comments"?`}},
		{"conditions that are no mapping", []string{"  notApproved:\n    description: The reviewer rejected it\n    expression: \"steps[-1].output.approved = false\"\n  late: depth > 5\n", "  [a]\n", "condition: notApproved", "condition: meta"},
			[]string{`16:3: conditions must be a mapping from name to expression, but this is a list → conditions: {approved: {description: …, expression: …}}`}},
		{"a condition without an expression", []string{"    expression: \"steps[-1].output.approved = false\"\n", ""},
			[]string{`16:3: condition "notApproved" has no "expression" → add "expression": JSONata, such as meta.approved = false`}},
		{"a condition that says nothing", []string{"late: depth > 5", "late:"},
			[]string{`19:3: condition "late" says nothing → a JSONata expression, such as meta.approved = false`}},
		{"a key in a condition", []string{"    description: The", "    descripton: The"},
			[]string{`17:5: condition "notApproved" has no key "descripton" → did you mean "description"?`}},
		{"no way to the end", []string{end, "{role: planner}"},
			[]string{`21:3: no path leads from $START to $END: $START → planner → reviewer → planner → let an edge lead to $END`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := listed(tt.edits...)
			require.Equal(t, tt.want, told(t, err))
		})
	}
}

// A role whose node is a list needs no $status in its schema, and its prompts
// may use the fields of any of its answers.
func TestVariantsWithoutStatus(t *testing.T) {
	t.Parallel()
	_, err := workflow.Parse(workflow.Source{File: "x.yaml", Data: []byte(lists)})
	require.Equal(t, []string{`26:87: location of graph[reviewer][0]: variable "plan" does not exist: the frontmatter of "reviewer" has no such field → there is "$status", "approved", "comments", "$prompt"`}, told(t, err))
}
