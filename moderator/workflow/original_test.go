package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/prosetest"
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
	for _, before := range []string{"version: 2\n", "version: \"1\"\n", "version:\n", "versoin: 1\n", "y-common: 1\n"} {
		text := before + base(t)
		prosetest.Error(t, accepts(text), before)
		require.Error(t, editorSchema(t).Validate(value(t, text)), before)
	}
}

// Liquid is no text in a file of the original's: the error says what to write. Elsewhere it is noted.
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
