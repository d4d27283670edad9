package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/mock"
)

// The program must accept the examples in the README.
func TestReadmeScenarios(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n# scenario\n(.*?)```").FindAllSubmatch(readme, -1)
	require.Len(t, blocks, 3)
	var all []mock.Scenario
	for _, block := range blocks {
		s, err := mock.Parse("README.md", block[1])
		require.NoError(t, err)
		all = append(all, s)
	}

	plan := all[0].Steps[0]
	got := agentkittest.Run(t, mock.Options(mock.Scenario{Steps: []mock.Step{plan}}), agentkittest.Scenario{
		Role: "planner",
		Schema: map[string]any{"type": "object", "properties": map[string]any{
			"$status": map[string]any{"const": "ready"}, "plan": map[string]any{"type": "string"},
		}},
	}).Succeeded()
	require.Equal(t, map[string]any{"$status": "ready", "plan": "Swap the operands."}, got.Output)
	require.Len(t, all[0].Steps, 5)
	require.Equal(t, "failed", all[1].Roles["tests"][0].Value.(map[string]any)["$status"])
	require.Len(t, all[2].Steps, 11)
}
