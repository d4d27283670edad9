package workflow_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// base returns a valid workflow with edits applied: pairs of old and new text.
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

// problemLines formats each problem as one line: "line:column: message → remedy".
func problemLines(t *testing.T, err error) []string {
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
	}{
		// Shape.
		{"a misspelt key is not missing as well", []string{"name: base", "nam: base"}},
		{"unknown and missing keys", []string{"    goal: Do it.\n", "    mood: good\n"}},
		{"not a text", []string{"description: Plans", "description: 2026"}},
		{"not a list", []string{"capabilities: [planning]", "capabilities: planning"}},
		{"not a text in a list", []string{"[planning]", "[planning, {a: b}]"}},
		{"two schemas", []string{"    meta:\n", "    frontmatter: {type: object}\n    meta:\n"}},
		{"limits", []string{"{ maxSteps: 10, maxVisitsPerRole: 3 }", "{ maxSteps: 0, maxVisitsPerRole: 2.5 }"}},
		{"an edge that is nothing", []string{"{ _: planner }", "{ _: }"}},
		{"a node that is a number", []string{"{ _: planner }", "7"}},
		{"blank prompt and location", []string{`prompt: "{{question}}"`, `prompt: " ", location: "  "`}},

		// Misplaced keys.
		{"keys of transitions", []string{"{ role: $SUSPEND, ", "{ to: $SUSPEND, condition: x, "}},
		{"!include", []string{"procedure: Think.", "procedure: !include think.md"}},
		{"!include of a schema", []string{"    meta:\n      type: object\n      properties:\n        summary: { type: string }\n        left: { type: [string, \"null\"] }\n", "    meta: !include s.json\n"}},
		{"other tags", []string{"goal: Plan it.", "goal: !env GOAL"}},

		// Graph.
		{"a misspelt target", []string{"role: worker", "role: wroker"}},
		{"$START as a target", []string{"role: $SUSPEND", "role: $START"}},
		{"a node without a role", []string{"  worker:\n    _:", "  wroker: { _: $END }\n  worker:\n    _:"}},
		{"a role without a node", []string{"  worker:\n    _:\n      role: $END\n      prompt: |\n        Done:\n          {{summary}}\n", ""}},
		{"$END with edges", []string{"  worker:\n    _:", "  $END: { _: planner }\n  worker:\n    _:"}},
		{"two ways to begin", []string{"{ _: planner }", "{ _: planner, new: planner }"}},
		{"a status at $START", []string{"{ _: planner }", "{ ready: planner }"}},
		{"a start that waits", []string{"{ _: planner }", "{ _: planner, resume: $SUSPEND }"}},
		{"no way out of a loop", []string{"      role: $END", "      role: worker"}},
		{"no way out of a corner", []string{"role: $SUSPEND", "role: $END", "      role: $END", "      role: worker"}},
		{"nobody says what to do", []string{"description: Plans", `description: ""`}},

		// Statuses.
		{"a misspelt status", []string{"    ready:", "    redy:"}},
		{"the reserved status as an edge", []string{"    ready:", "    $SUSPEND: worker\n    ready:"}},
		{"no const in a variant", []string{"$status: { const: unclear }", "$status: { enum: [1] }"}},
		{"a status that the schema does not know", []string{"    _:\n      role: $END", "    done:\n      role: $END"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(base(t, tt.edits...))
			prosetest.Text(t, problemLines(t, err))
		})
	}
}

// Messages of the packages below are passed on unchanged, with the file's position and a remedy.
func TestProblemsFromBelow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		edits []string
		at    string
	}{
		{"a misspelt keyword", []string{"      type: object\n      properties:\n        summary", "      type: object\n      propertes:\n        summary"},
			"32:7"},
		{"a format that no store checks", []string{"summary: { type: string }", "summary: { type: string, format: hostname }"},
			"33:34"},
		{"a text cut at its comma", []string{"plan: { type: string }", "plan: { type: string, description: first, then more }"},
			"15:55"},
		{"no quotes around a template", []string{`prompt: "{{question}}"`, `prompt: {{question}}`},
			"39:41"},
		{"a key that stands twice", []string{"description: Two roles.", "description: Two roles.\nname: base"},
			"3:1"},
		{"an open bracket", []string{"[planning]", "[planning"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(base(t, tt.edits...))
			var problems *workflow.Problems
			require.ErrorAs(t, err, &problems)
			p := problems.List[0]
			require.True(t, strings.HasPrefix(fmt.Sprintf("%d:%d", p.Line, p.Column), tt.at), "%d:%d", p.Line, p.Column)
			prosetest.Text(t, p.Message)
			prosetest.Text(t, p.Remedy)
		})
	}
}

func TestVariablesThatDoNotExist(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, prompt, place string
	}{
		{"a misspelt name", "a {{plam}}", "ready"},
		{"a field of another answer", "ä {{{question}}}", "ready"},
		{"a path into a text", "{{plan.title}}", "ready"},
		{"an item's misspelt field", "{{steps.0.titel}}", "ready"},
		{"in a section", "{{#steps}}{{titel}}{{/steps}}", "ready"},
		{"a section that misses a field by a letter", "x {{#step}}x{{/step}}", "ready"},
		{"a filter", "{{steps | join}}", "ready"},
		{"bad syntax", "{{plan}} {{#steps}}", "ready"},
		{"a partial", "{{> p}}", "ready"},
		{"a second tag of the same name", "{{plan}} {{x}} {{x}}", "ready"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(base(t, "Do {{{plan}}}", tt.prompt))
			prosetest.Text(t, problemLines(t, err))
		})
	}

	_, err := parse(base(t, "{ _: planner }", `{ _: { role: planner, prompt: "{{prompt}} {{task}}" } }`))
	prosetest.Text(t, problemLines(t, err))

	_, err = parse(base(t, `location: "{{plan}}"`, `location: "{{dir}}"`))
	prosetest.Text(t, problemLines(t, err))

	_, err = parse(base(t, "{{summary}}", "{{summery}}"))
	prosetest.Text(t, problemLines(t, err), "in a block, too")
}

// Variables that once were rejected by mistake.
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
	workflowNames := []string{
		`"a/b"`, `"-x"`, `"a b"`,
		`"a\nb"`, `""`, "x.yaml",
		"4KNM2PXR3B1QW", strings.Repeat("x", 101),
	}
	for _, name := range workflowNames {
		_, err := workflow.Parse(workflow.Source{Data: []byte(base(t, "name: base", "name: "+name))})
		prosetest.Error(t, err, name)
	}
	for _, name := range []string{"solve-issue", "v1.2_x", "审查", "9lives"} {
		_, err := workflow.Parse(workflow.Source{Data: []byte(base(t, "name: base", "name: "+name))})
		require.NoError(t, err, name)
	}
	roleNames := []string{
		`"$END"`, `"$x"`, `"-v"`, `"a/b"`,
		`"a\nb"`, `"a\u200bb"`, `" a"`, `""`,
	}
	for _, name := range roleNames {
		text := base(t, "  worker:\n    description", "  "+name+": &r\n    description")
		_, err := parse(text)
		prosetest.Error(t, err, name)
	}
	_, err := parse(base(t, "    ready:", `    "re\tady":`))
	prosetest.Error(t, err)
}

func TestFileAndNameMustAgree(t *testing.T) {
	t.Parallel()
	data := []byte(base(t))
	for _, path := range []string{"", "base.yaml", "x/base.yml", "/w/base/index.yaml", "base/index.yml", "index.yaml", "../index.yml"} {
		_, err := workflow.Parse(workflow.Source{File: path, Data: data})
		require.NoError(t, err, path)
	}
	_, err := workflow.Parse(workflow.Source{File: "dir/other.yaml", Data: data})
	prosetest.Error(t, err)
	_, err = workflow.Parse(workflow.Source{File: "index.yaml", Path: "/w/other/index.yaml", Data: data})
	prosetest.Error(t, err)
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parse(base(t, "name: base", "name: other", "goal: Plan it.", "gaol: Plan it.", "Do {{{plan}}}", "Do {{{plam}}}", "role: $SUSPEND", "role: nobody"))
	require.Len(t, problemLines(t, err), 4)
	prosetest.Error(t, err)
}

func TestOnlyMappings(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "- a", "a"} {
		_, err := parse(text)
		prosetest.Error(t, err, "%q", text)
	}
}

// replaceOnce replaces a text that must exist.
func replaceOnce(text, old, replacement string) string {
	if !strings.Contains(text, old) {
		panic("nothing to replace: " + old)
	}
	return strings.Replace(text, old, replacement, 1)
}
