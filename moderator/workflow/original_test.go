package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
)

// The original's files are accepted as they are, and are the same workflows as without their version
// and their anchors.
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
	for before, want := range map[string]string{
		"version: 2\n":     `1:10: version "2" of the file format is not known → version: 1`,
		"version: \"1\"\n": `1:10: version "1" of the file format is not known → version: 1`,
		"version:\n":       `version "" of the file format is not known`,
		"versoin: 1\n":     `has no key "versoin"`,
		"y-common: 1\n":    `has no key "y-common"`,
	} {
		text := before + base(t)
		said := strings.Join(strings.Fields(accepts(text).Error()), " ")
		for part := range strings.SplitSeq(want, " → ") {
			require.Contains(t, said, part)
		}
		require.Error(t, editorSchema(t).Validate(value(t, text)), before)
	}
}

// Liquid is no text in a file of the original's: the error says what to write. Elsewhere it is noted.
func TestLiquidTags(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"{% if summary == 'x' %}x{% endif %}": "the tag {% if %} of Liquid does not exist → write {{#summary}}…{{/summary}}, and {{^summary}}",
		"{%- unless summary -%}":              "the tag {% unless %} of Liquid does not exist → write {{^summary}}…{{/summary}}",
		"{% for item in summary %}":           "the tag {% for %} of Liquid does not exist → write {{#summary}}…{{.}}…{{/summary}}",
		"{% comment %}":                       "the tag {% comment %} of Liquid does not exist → write {{! … }}",
		"{% assign x = 1 %}":                  "the tag {% assign %} of Liquid does not exist → prepare the value in a role",
		"{{summary}} {% raw %}{% endraw %}":   "write {{=<% %>=}} before it",
	} {
		text := base(t, "{{summary}}", tag)
		said := strings.Join(strings.Fields(accepts("version: 1\n"+text).Error()), " ")
		for part := range strings.SplitSeq(want, " → ") {
			require.Contains(t, said, part)
		}
		def, err := workflow.Parse(workflow.Source{Data: []byte(text), Node: nodes})
		require.NoError(t, err)
		noted := strings.Contains(strings.Join(def.Notices, "\n"), "is no tag here")
		require.True(t, noted, tag)
	}
	require.ErrorContains(t, accepts("version: 1\n"+base(t, "{{summary}}", "{% if summary %}")), "workflow:46:11: ")
}
