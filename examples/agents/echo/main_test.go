package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

func TestEcho(t *testing.T) {
	got := agentkittest.Run(t, options(), agentkittest.Scenario{EdgePrompt: "Say hello."}).Succeeded()
	require.Equal(t, map[string]any{"$status": "done"}, got.Output)
	require.Contains(t, got.Content, "Say hello.")
	require.Equal(t, "uwf-echo", got.Step.Agent)
}

// For a role without the status "done", none is invented: the step fails, and the text is kept.
func TestEchoCannotPlayEveryRole(t *testing.T) {
	got := agentkittest.Run(t, options(), agentkittest.Scenario{
		EdgePrompt: "Review it.",
		Schema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"$status": map[string]any{"enum": []any{"approved", "rejected"}}},
			"required":   []any{"$status"},
		},
	}).Failed("$status")
	require.Contains(t, got.Raw, "Review it.")
}
