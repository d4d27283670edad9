package templates_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/templates"
	"github.com/united-workforce/uwf/moderator/workflow"
)

func TestEveryTemplateIsAWorkflow(t *testing.T) {
	t.Parallel()
	for _, template := range templates.All() {
		text, err := templates.Text(template.Name, "x-1", `"x-1"`)
		require.NoError(t, err)
		def, err := workflow.Parse(workflow.Source{File: "x-1.yaml", Data: []byte(text)})
		require.NoError(t, err, template.Name)
		require.Equal(t, "x-1", def.Name)
		require.NotContains(t, text, "my-workflow")
		require.Contains(t, text, "uwf run ./x-1.yaml")
		require.GreaterOrEqual(t, strings.Count(text, "#"), 6, "%s teaches nothing", template.Name)
		require.NotEmpty(t, template.Usage)
	}
	_, err := templates.Text("nothing", "x", "x")
	require.Error(t, err)
}
