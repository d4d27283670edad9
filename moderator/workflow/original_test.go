package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Files of the original are accepted unchanged, and are the same workflows without their version and anchors.
func TestOriginalFiles(t *testing.T) {
	t.Parallel()
	plain, err := workflow.Parse(workflow.Source{Data: []byte(base(t)), Node: nodes})
	require.NoError(t, err)
	for _, before := range []string{"version: 1\n", "version: 1\nx-common: &common { type: string }\nx-: 1\n", "x-any: [1, {a: b}]\n"} {
		text := before + base(t)
		if strings.Contains(before, "&common") {
			text = replaceOnce(text, "summary: { type: string }", "summary: *common")
		}
		got, err := workflow.Parse(workflow.Source{Data: []byte(text), Node: nodes})
		require.NoError(t, err, before)
		plain.Notices, got.Notices = nil, nil // their lines differ
		require.Equal(t, plain, got, before)
		require.NoError(t, editorSchema(t).Validate(value(t, text)))
	}
	for _, before := range []string{"version: 2\n", "version: \"1\"\n", "version:\n", "versoin: 1\n", "y-common: 1\n"} {
		text := before + base(t)
		prosetest.Error(t, accepts(text), before)
		require.Error(t, editorSchema(t).Validate(value(t, text)), before)
	}
}

// In a file of the original, a Liquid tag is an error with a replacement; elsewhere it causes a notice.
func TestLiquidTags(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{
		"{% if summary == 'x' %}x{% endif %}", "{%- unless summary -%}", "{% for item in summary %}", "{% comment %}",
		"{% assign x = 1 %}", "{{summary}} {% raw %}{% endraw %}",
	} {
		text := base(t, "{{summary}}", tag)
		prosetest.Error(t, accepts("version: 1\n"+text), tag)
		def, err := workflow.Parse(workflow.Source{Data: []byte(text), Node: nodes})
		require.NoError(t, err)
		require.NotEmpty(t, def.Notices)
		prosetest.Text(t, def.Notices, "notices: "+tag)
	}
	require.ErrorContains(t, accepts("version: 1\n"+base(t, "{{summary}}", "{% if summary %}")), "workflow:46:11: ")
}

// Other features of the original's templates: variables missing at the start, filters, and words that other
// tools replace.
func TestOriginalTemplates(t *testing.T) {
	t.Parallel()
	start := []string{"{ _: planner }", `{ _: { role: planner, prompt: "{{ $prompt }} in {{ repo }}{{#x}}{{y}}{{/x}}{{^x}} at {{a.b}}{{/x}}." } }`}
	def, err := parse("version: 1\n" + base(t, start...))
	require.NoError(t, err)
	require.Equal(t, "{{ $prompt }} in {{#x}}{{y}}{{/x}}{{^x}} at {{/x}}.", def.Graph["$START"].Edges["_"].Prompt)
	require.Zero(t, def.Language)
	prosetest.Text(t, def.Notices, "at the start")
	prosetest.Error(t, accepts(base(t, start...)), "at the start of another file")
	for _, blank := range []string{"{{ repo }}", " {{ repo }} {{ issue }}\\n"} { // nothing remains of the prompt at the start
		def, err = parse("version: 1\n" + base(t, "{ _: planner }", `{ _: { role: planner, prompt: "`+blank+`" } }`))
		require.NoError(t, err)
		require.Empty(t, def.Graph["$START"].Edges["_"].Prompt)
		require.NotEmpty(t, def.Notices)
		prosetest.Error(t, accepts("version: 1\nname: base\ndescription: d\nroles:\n"+
			"  a: { description: \"\", goal: g, schema: { type: object } }\n"+
			`graph: { $START: { _: { role: a, prompt: "`+blank+`" } }, a: $END }`+"\n"), "empty at the start: "+blank)
	}
	_, err = parse("version: 1\n" + base(t, "{ _: planner }", `{ _: { role: planner, prompt: "{{ repo }}: {{$inputs.x}}" } }`))
	require.Equal(t, 37, lineOf(t, err), "an error stays where it is")

	def, err = parse(base(t, "{{summary}}", `{{summary | join: ", "}}`))
	require.NoError(t, err)
	require.Equal(t, protocol.Language3, def.Language)

	for _, text := range []string{
		`{{summary | default: "none"}}`, "{{summary|join}}", "{{summary | upper}}", "{{summery | join: ', '}}",
		"{{- summary -}}",
	} {
		prosetest.Error(t, accepts(base(t, "{{summary}}", text)), text)
	}
	def, err = parse(base(t, "{{summary}}", "Do $ARGUMENTS with ${file} in ${HOME}: {{summary}}"))
	require.NoError(t, err)
	prosetest.Text(t, def.Notices, "words of other tools")
	def, err = parse("name: base\ndescription: d\nroles:\n  a: { prompt: Do $ARGUMENTS. }\n  b: { all: [a] }\n" +
		"graph: { $START: { _: a, resume: a }, a: b, b: { done: $END, failed: a } }\n")
	require.NoError(t, err)
	require.Len(t, def.Notices, 1, "once for all edges and parts of a role")
}

// TestInputsInRemedies checks that a remedy finds an input by its own name.
func TestInputsInRemedies(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{{topic}}", "{{inputs.topic}}", "{{$inputs.topci}}", "{{nothing}}"} {
		for _, place := range [][]string{{"{{summary}}", text}, {"{ _: planner }", `{ _: { role: planner, prompt: "` + text + `" } }`}} {
			edits := append(place, "roles:", "inputs: { topic: { schema: { type: string } } }\nroles:")
			prosetest.Error(t, accepts(base(t, edits...)), place[0]+" "+text)
		}
	}
}

func lineOf(t *testing.T, err error) int {
	t.Helper()
	var problems *workflow.Problems
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems.List, 1)
	return problems.List[0].Line
}
