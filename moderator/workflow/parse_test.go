package workflow_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
)

// base is a valid workflow, with the edits applied: pairs of old and new text.
func base(t *testing.T, edits ...string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/base.yaml")
	require.NoError(t, err)
	text := string(data)
	for i := 0; i < len(edits); i += 2 {
		require.Contains(t, text, edits[i])
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return text
}

func parse(text string) (workflow.Definition, error) {
	return workflow.Parse(workflow.Source{File: "base.yaml", Data: []byte(text)})
}

// told are the problems as one line each: "line:column: message → remedy".
func told(t *testing.T, err error) []string {
	t.Helper()
	var problems *workflow.Problems
	require.ErrorAs(t, err, &problems)
	var list []string
	for _, p := range problems.List {
		line := fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message)
		if p.Remedy != "" {
			line += " → " + p.Remedy
		}
		list = append(list, line)
	}
	return list
}

func TestParse(t *testing.T) {
	t.Parallel()
	def, err := parse(base(t))
	require.NoError(t, err)
	require.Equal(t, protocol.Workflow{
		Name: "base", Description: "Two roles.",
		Roles: map[string]protocol.Role{
			"planner": {Description: "Plans", Goal: "Plan it.", Capabilities: []string{"planning"}, Procedure: "Think.", Output: "The plan."},
			"worker":  {Description: "Works", Goal: "Do it.", Capabilities: []string{}, Procedure: "Work.\n", Output: "A summary."},
		},
		Graph: map[string]protocol.GraphNode{
			"$START": {Edges: map[string]protocol.Edge{"_": {Role: "planner"}}},
			"planner": {Edges: map[string]protocol.Edge{
				"ready":   {Role: "worker", Prompt: "Do {{{plan}}}", Location: "{{plan}}"},
				"unclear": {Role: "$SUSPEND", Prompt: "{{question}}"},
			}},
			"worker": {Edges: map[string]protocol.Edge{"_": {Role: "$END", Prompt: "Done:\n  {{summary}}\n"}}},
		},
		Limits: &protocol.Limits{MaxSteps: 10, MaxVisitsPerRole: 3},
	}, def.Workflow)
	require.Equal(t, map[string]any{
		"type": "object",
		"properties": map[string]any{
			"summary": map[string]any{"type": "string"},
			"left":    map[string]any{"type": []any{"string", "null"}},
		},
	}, def.Schemas["worker"], "the alias meta holds the schema as well")
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		edits []string
		want  []string
	}{
		// Shape.
		{"a misspelt key is not missing as well", []string{"name: base", "nam: base"},
			[]string{`1:1: the workflow has no key "nam" → did you mean "name"?`}},
		{"unknown and missing keys", []string{"    goal: Do it.\n", "    mood: good\n"},
			[]string{
				`23:3: role "worker" has no "goal" → add "goal": who the agent is and what it is after`,
				`25:5: role "worker" has no key "mood" → the keys here are "description", "goal", "capabilities", "procedure", "output", "frontmatter", "meta", "outputSchema", "extractPrompt", "run", "person", "workflow" and 2 more`}},
		{"not a text", []string{"description: Plans", "description: 2026"},
			[]string{`5:18: description of role "planner" must be a text, but this is the number 2026 → put it in quotes: "2026"`}},
		{"not a list", []string{"capabilities: [planning]", "capabilities: planning"},
			[]string{`7:19: capabilities of role "planner" must be a list of texts, but this is the text "planning" → capabilities: [planning]`}},
		{"not a text in a list", []string{"[planning]", "[planning, {a: b}]"},
			[]string{`7:30: a capability of role "planner" must be a text, but this is a mapping`}},
		{"two schemas", []string{"    meta:\n", "    frontmatter: {type: object}\n    meta:\n"},
			[]string{`31:5: role "worker" has both "frontmatter" and "meta", which mean the same → keep one of them`}},
		{"limits", []string{"{ maxSteps: 10, maxVisitsPerRole: 3 }", "{ maxSteps: 0, maxVisitsPerRole: 2.5 }"},
			[]string{
				`46:21: maxSteps must be a whole number from 1, but this is the number 0 → leave it out for the default`,
				`46:42: maxVisitsPerRole must be a whole number from 1, but this is the number 2.5 → leave it out for the default`}},
		{"an edge that is nothing", []string{"{ _: planner }", "{ _: }"},
			[]string{`36:13: graph[$START][_] leads nowhere → name the role that is next, or $END`}},
		{"a node that is a text", []string{"{ _: planner }", "planner"},
			[]string{`36:11: graph[$START] must be a mapping from status to edge, or a list of transitions, but this is the text "planner" → {_: planner}`}},
		{"blank prompt and location", []string{`prompt: "{{question}}"`, `prompt: " ", location: "  "`},
			[]string{
				`39:40: prompt of graph[planner][unclear] is blank → leave it out: then the role's description serves`,
				`39:55: location of graph[planner][unclear] is blank → leave it out: then the thread's directory serves`}},

		// Where it does not belong.
		{"keys of transitions", []string{"{ role: $SUSPEND, ", "{ to: $SUSPEND, condition: x, "},
			[]string{
				`39:16: graph[planner][unclear] has "to", which belongs to lists of transitions → write "role"`,
				`39:30: graph[planner][unclear] has a condition, which belongs to lists of transitions → make the node a list: - {role: …, condition: …}, or let the role answer a $status and name the edge after it`}},
		{"!include", []string{"procedure: Think.", "procedure: !include think.md"},
			[]string{`8:25: !include works only in a file, and this text is none → write the text here, as a block (|)`}},
		{"!include of a schema", []string{"    meta:\n      type: object\n      properties:\n        summary: { type: string }\n        left: { type: [string, \"null\"] }\n", "    meta: !include s.json\n"},
			[]string{`30:20: !include works only in a file, and this text is none → write the text here, as a block (|)`}},
		{"other tags", []string{"goal: Plan it.", "goal: !env GOAL"},
			[]string{`6:16: the tag "!env" means nothing in a workflow → leave the tag out`}},

		// Graph.
		{"a misspelt target", []string{"role: worker", "role: wroker"},
			[]string{
				`23:3: no path leads from $START to role "worker" → let an edge lead to it, or remove it`,
				`38:20: graph[planner][ready] leads to "wroker", but there is no such role → did you mean "worker"?`}},
		{"$START as a target", []string{"role: $SUSPEND", "role: $START"},
			[]string{`39:22: graph[planner][unclear] leads to $START, which is not a role → name the role that shall be next`}},
		{"a node without a role", []string{"  worker:\n    _:", "  wroker: { _: $END }\n  worker:\n    _:"},
			[]string{`40:3: the graph has a node "wroker", but there is no such role → did you mean "worker"?`}},
		{"a role without a node", []string{"  worker:\n    _:\n      role: $END\n      prompt: |\n        Done:\n          {{summary}}\n", ""},
			[]string{`23:3: role "worker" has no node in the graph: nothing would follow it → add to the graph: worker: {_: {role: …}}, or remove the role`}},
		{"$END with edges", []string{"  worker:\n    _:", "  $END: { _: planner }\n  worker:\n    _:"},
			[]string{`40:3: $END cannot have edges: a thread ends or waits there → remove the node`}},
		{"two ways to begin", []string{"{ _: planner }", "{ _: planner, new: planner }"},
			[]string{`36:25: $START has both "_" and "new", which mean the same → keep one of them`}},
		{"a status at $START", []string{"{ _: planner }", "{ ready: planner }"},
			[]string{
				`36:3: $START needs exactly one edge "_" → add $START: {_: {role: …}}`,
				`36:13: $START has an edge "ready", but nobody has answered a status yet → name the edge _`}},
		{"a start that waits", []string{"{ _: planner }", "{ _: planner, resume: $SUSPEND }"},
			[]string{`36:33: a workflow cannot start with $SUSPEND: there is no role to resume → let a role ask`}},
		{"no way out of a loop", []string{"      role: $END", "      role: worker"},
			[]string{`36:3: no path leads from $START to $END: $START → planner → worker → worker → let an edge lead to $END`}},
		{"no way out of a corner", []string{"role: $SUSPEND", "role: $END", "      role: $END", "      role: worker"},
			[]string{`40:3: no path leads from "worker" to $END: worker → worker → let an edge lead to $END`}},
		{"nobody says what to do", []string{"description: Plans", `description: ""`},
			[]string{`36:13: graph[$START][_] has no prompt, and role "planner" has no description that could serve → add a prompt to the edge, or a description to the role`}},

		// Statuses.
		{"a misspelt status", []string{"    ready:", "    redy:"},
			[]string{
				`37:3: "planner" can answer "ready", but its node has no edge for it → add ready: {role: …, prompt: …}`,
				`38:5: "planner" never answers "redy" → did you mean "ready"?`}},
		{"the reserved status as an edge", []string{"    ready:", "    $SUSPEND: worker\n    ready:"},
			[]string{`38:5: graph[planner][$SUSPEND] is never taken: a role that answers $SUSPEND suspends the thread at once → leave the edge out: resuming runs the same role again`}},
		{"no const in a variant", []string{"$status: { const: unclear }", "$status: { enum: [unclear] }"},
			[]string{
				`19:11: variant 2 of the frontmatter of "planner" needs $status with a const: it decides which edge is taken → properties: {$status: {const: …}}`,
				`39:5: "planner" never answers "unclear" → it answers "ready"`}},
		{"a status that the schema does not know", []string{"    _:\n      role: $END", "    done:\n      role: $END"},
			[]string{`41:5: the frontmatter of "worker" names no statuses to choose from, so its node needs the edge "_" instead of "done" → name the edge _, or give $status in the frontmatter an enum, or oneOf with a const each`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(base(t, tt.edits...))
			require.Equal(t, tt.want, told(t, err))
		})
	}
}

// What the packages below find is passed on in their words, with our place and
// remedy.
func TestProblemsFromBelow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		edits    []string
		at, says string
		remedy   string
	}{
		{"a misspelt keyword", []string{"      type: object\n      properties:\n        summary", "      type: object\n      propertes:\n        summary"},
			"32:7", `the frontmatter of "worker": /propertes: `, ""},
		{"a format that no store checks", []string{"summary: { type: string }", "summary: { type: string, format: hostname }"},
			"33:34", `the frontmatter of "worker": /properties/summary/format: `, ""},
		{"a text cut at its comma", []string{"plan: { type: string }", "plan: { type: string, description: first, then more }"},
			"15:55", `the frontmatter of "planner": /oneOf/0/properties/plan/then more: `, "put the whole text in quotes: inside {…} a comma ends it"},
		{"no quotes around a template", []string{`prompt: "{{question}}"`, `prompt: {{question}}`},
			"39:41", "", "a text with {{…}} in it needs quotes around the whole text, or a block (|)"},
		{"a key that stands twice", []string{"description: Two roles.", "description: Two roles.\nname: base"},
			"3:1", "", ""},
		{"an open bracket", []string{"[planning]", "[planning"}, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(base(t, tt.edits...))
			var problems *workflow.Problems
			require.ErrorAs(t, err, &problems)
			p := problems.List[0]
			require.True(t, strings.HasPrefix(fmt.Sprintf("%d:%d", p.Line, p.Column), tt.at), "%d:%d", p.Line, p.Column)
			require.Contains(t, p.Message, tt.says)
			require.Equal(t, tt.remedy, p.Remedy)
		})
	}
}

func TestVariablesThatDoNotExist(t *testing.T) {
	t.Parallel()
	lacks := func(role, status string) string {
		if status != "" {
			status = fmt.Sprintf(" when it answers %q", status)
		}
		return fmt.Sprintf("the frontmatter of %q has no such field%s", role, status)
	}
	ready := func(column int, text string) []string {
		return []string{fmt.Sprintf("38:%d: prompt of graph[planner][ready]: %s", column, text)}
	}
	tests := []struct {
		name, prompt, place string
		want                []string
	}{
		{"a misspelt name", "a {{plam}}", "ready", ready(39, `variable "plam" does not exist: `+lacks("planner", "ready")+` → did you mean "plan"?`)},
		{"a field of another answer", "ä {{{question}}}", "ready", ready(39, `variable "question" does not exist: `+lacks("planner", "ready")+` → "question" is a field of the answer "unclear" only`)},
		{"a path into a text", "{{plan.title}}", "ready", ready(37, `variable "plan.title" does not exist: `+lacks("planner", "ready")+` → there is "$prompt"`)},
		{"an item's misspelt field", "{{steps.0.titel}}", "ready", ready(37, `variable "steps.0.titel" does not exist: `+lacks("planner", "ready")+` → did you mean "steps.0.title"?`)},
		{"in a section", "{{#steps}}{{titel}}{{/steps}}", "ready", ready(47, `variable "titel" does not exist: `+lacks("planner", "ready")+` → did you mean "title"?`)},
		{"a section that misses a field by a letter", "x {{#step}}x{{/step}}", "ready", ready(39, `{{#step}} is over "step", which `+lacks("planner", "ready")+` → did you mean "steps"?`)},
		{"a filter", "{{steps | join}}", "ready", ready(37, `variable "steps | join" does not exist: `+lacks("planner", "ready")+` → filters do not exist: lists are joined by commas as they are`)},
		{"bad syntax", "{{plan}} {{#steps}}", "ready", ready(46, `section "steps" is not closed with {{/steps}}`)},
		{"a partial", "{{> p}}", "ready", ready(37, `partials ({{> p}}) are not supported: a template reads no other files`)},
		{"a second tag of the same name", "{{plan}} {{x}} {{x}}", "ready", []string{
			`38:46: prompt of graph[planner][ready]: variable "x" does not exist: ` + lacks("planner", "ready") + ` → there is "$status", "meta", "plan", "steps", "$prompt"`,
			`38:52: prompt of graph[planner][ready]: variable "x" does not exist: ` + lacks("planner", "ready") + ` → there is "$status", "meta", "plan", "steps", "$prompt"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(base(t, "Do {{{plan}}}", tt.prompt))
			require.Equal(t, tt.want, told(t, err))
		})
	}

	_, err := parse(base(t, "{ _: planner }", `{ _: { role: planner, prompt: "{{prompt}} {{task}}" } }`))
	require.Equal(t, []string{`36:53: prompt of graph[$START][_]: variable "task" does not exist: at $START nobody has answered yet → there is "$prompt"`}, told(t, err))

	_, err = parse(base(t, `location: "{{plan}}"`, `location: "{{dir}}"`))
	require.Equal(t, []string{`38:64: location of graph[planner][ready]: variable "dir" does not exist: ` + lacks("planner", "ready") + ` → there is "$status", "meta", "plan", "steps", "$prompt"`}, told(t, err))

	_, err = parse(base(t, "{{summary}}", "{{summery}}"))
	require.Equal(t, []string{`45:11: prompt of graph[worker][_]: variable "summery" does not exist: ` + lacks("worker", "") + ` → did you mean "summary"?`}, told(t, err), "in a block, too")
}

// What an author may write and once was told not to.
func TestVariablesThatExist(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{
		"{{ plan }}", "{{{  plan  }}}", "{{&plan}}", "{{$status}} {{$prompt}} {{prompt}} {{prompt.length}}",
		"{{plan.length}} {{steps.length}} {{steps.1.title}}",
		"{{#steps}}{{title}} {{plan}} {{.}}{{/steps}}{{^steps}}none{{/steps}}",
		"{{#steps.0}}{{title}}{{/steps.0}}",
		"{{#meta}}{{anything.at.all}}{{/meta}} {{meta.free}}",
		"{{#nothing}}{{not.here}}{{/nothing}} x",
		"{{! question }} x", "{{=<% %>=}}<% plan %> {{question}}",
	} {
		_, err := parse(base(t, "Do {{{plan}}}", prompt))
		require.NoError(t, err, prompt)
	}
}

func TestStatusesThatFit(t *testing.T) {
	t.Parallel()
	schema := "      type: object\n      properties:\n        summary: { type: string }\n"
	with := func(status string) string { return schema + "        " + status + "\n" }
	one, two := "    _:\n      role: $END\n", "    done: $END\n    failed: planner\n"
	edge := "    _:\n      role: $END\n      prompt: |\n        Done:\n          {{summary}}\n"
	for _, tt := range []struct{ status, edges string }{
		{"$status: { const: done }", one},
		{"$status: { const: done }", "    done: $END\n"},
		{"$status: { type: string }", one},
		{"$status: { enum: [done] }", one},
		{"$status: { enum: [done, failed] }", two},
		{"$status: { enum: [done, failed, $SUSPEND] }", two},
		{"status: { enum: [done, failed] }", two},
		{"status: { enum: [done, failed] }", one},
	} {
		_, err := parse(base(t, schema, with(tt.status), edge, tt.edges))
		require.NoError(t, err, "%s with\n%s", tt.status, tt.edges)
	}
	_, err := parse(base(t, "        - properties:\n            $status: { const: unclear }",
		"        - properties: { $status: { const: $SUSPEND }, reason: { type: string } }\n        - properties:\n            $status: { const: unclear }"))
	require.NoError(t, err, "a role that may answer $SUSPEND needs no edge for it")
}

func TestNames(t *testing.T) {
	t.Parallel()
	workflowNames := map[string]string{
		`"a/b"`: "has characters that a workflow's name cannot have", `"-x"`: "has characters", `"a b"`: "has characters",
		`"a\nb"`: "has characters", `""`: "name is blank", "x.yaml": "would be taken for a file",
		"4KNM2PXR3B1QW": "would be taken for a hash", strings.Repeat("x", 101): "longer than 100",
	}
	for name, want := range workflowNames {
		_, err := workflow.Parse(workflow.Source{Data: []byte(base(t, "name: base", "name: "+name))})
		require.ErrorContains(t, err, want)
	}
	for _, name := range []string{"solve-issue", "v1.2_x", "审查", "9lives"} {
		_, err := workflow.Parse(workflow.Source{Data: []byte(base(t, "name: base", "name: "+name))})
		require.NoError(t, err, name)
	}
	roleNames := map[string]string{
		`"$END"`: "is reserved", `"$x"`: "begins with $", `"-v"`: "like an option", `"a/b"`: "like a path",
		`"a\nb"`: "cannot be seen", `"a\u200bb"`: "cannot be seen", `" a"`: "begins or ends with a blank", `""`: "is blank",
	}
	for name, want := range roleNames {
		text := base(t, "  worker:\n    description", "  "+name+": &r\n    description")
		_, err := parse(text)
		require.ErrorContains(t, err, want, name)
	}
	_, err := parse(base(t, "    ready:", `    "re\tady":`))
	require.ErrorContains(t, err, `the status "re\tady" has line ends or other characters that cannot be seen`)
}

func TestFileAndNameMustAgree(t *testing.T) {
	t.Parallel()
	data := []byte(base(t))
	for _, path := range []string{"", "base.yaml", "x/base.yml", "/w/base/index.yaml", "base/index.yml", "index.yaml", "../index.yml"} {
		_, err := workflow.Parse(workflow.Source{File: path, Data: data})
		require.NoError(t, err, path)
	}
	_, err := workflow.Parse(workflow.Source{File: "dir/other.yaml", Data: data})
	require.EqualError(t, err, `dir/other.yaml:1:7: the name is "base", but the file "other.yaml" stands for "other"
    name: base
    → name: other, or rename the file`)
	_, err = workflow.Parse(workflow.Source{File: "index.yaml", Path: "/w/other/index.yaml", Data: data})
	require.ErrorContains(t, err, `the file "index.yaml" stands for "other"`)
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parse(base(t, "name: base", "name: other", "goal: Plan it.", "gaol: Plan it.", "Do {{{plan}}}", "Do {{{plam}}}", "role: $SUSPEND", "role: nobody"))
	require.Len(t, told(t, err), 4)
	require.EqualError(t, err, `base.yaml:1:7: the name is "other", but the file "base.yaml" stands for "base"
    name: other
    → name: base, or rename the file
base.yaml:6:5: role "planner" has no key "gaol"
    gaol: Plan it.
    → did you mean "goal"?
base.yaml:38:40: prompt of graph[planner][ready]: variable "plam" does not exist: the frontmatter of "planner" has no such field when it answers "ready"
    ready: { role: worker, prompt: "Do {{{plam}}}", location: "{{plan}}" }
    → did you mean "plan"?
base.yaml:39:22: graph[planner][unclear] leads to "nobody", but there is no such role
    unclear: { role: nobody, prompt: "{{question}}" }
    → there are "planner", "worker", "$END", "$SUSPEND"`)
}

func TestOnlyMappings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":    "1:1: a workflow is a mapping, but this is nothing",
		"- a": "1:1: a workflow is a mapping, but this is a list",
		"a":   `1:1: a workflow is a mapping, but this is the text "a"`,
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, "base.yaml:"+want)
	}
}

// replaceOnce replaces a text that must be there.
func replaceOnce(text, old, replacement string) string {
	if !strings.Contains(text, old) {
		panic("nothing to replace: " + old)
	}
	return strings.Replace(text, old, replacement, 1)
}
