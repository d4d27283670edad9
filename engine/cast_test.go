//go:build unix

package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// A plan must say what a run would do: the model of the command line goes before
// that of the config.
func TestCastNamesAgentAndModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	bin := t.TempDir()
	program := filepath.Join(bin, "uwf-builtin")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	w.config = protocol.Config{
		Providers: map[string]protocol.Provider{"p": {BaseURL: "http://h/v1"}},
		Models:    map[string]protocol.Model{"small": {Provider: "p", Name: "s"}, "large": {Provider: "p", Name: "l"}},
		Agents: map[string]protocol.Agent{
			"own":      {Command: program},
			"told":     {Command: program, Args: []string{"--model", "large"}},
			"external": {Command: "/bin/sh", Model: "opus"},
			"claude":   {Command: filepath.Join(bin, "uwf-claude-code"), Model: "sonnet"},
			"missing":  {Command: "uwf-no-such-program"},
		},
		DefaultAgent: "own", DefaultModel: "small",
		AgentOverrides: map[string]map[string]string{"test": {"worker": "told"}},
		ModelOverrides: map[string]string{"test.reviewer": "haiku", "test.tester": "large"},
	}
	cast := func(role string, o StepOptions) Casting {
		return w.Cast(context.Background(), protocol.Workflow{Name: "test"}, role, o)
	}

	c := cast("planner", StepOptions{})
	require.Nil(t, c.Problem)
	require.Equal(t, "own", c.Agent)
	require.Equal(t, program, c.Path)
	require.Equal(t, "p s", c.Model)
	require.Equal(t, "p l", cast("worker", StepOptions{}).Model)
	require.Equal(t, "opus", cast("planner", StepOptions{Agent: "external"}).Model)
	require.Equal(t, "external", cast("planner", StepOptions{Agent: "own", Agents: map[string]string{"planner": "external"}}).Agent)

	// What is shown is what is run, for programs of others, too.
	require.NoError(t, os.WriteFile(filepath.Join(bin, "uwf-claude-code"), []byte("#!/bin/sh\n"), 0o755))
	for role, model := range map[string]string{"planner": "sonnet", "reviewer": "haiku", "tester": "l"} {
		c := cast(role, StepOptions{Agent: "claude"})
		require.Nil(t, c.Problem)
		require.Equal(t, model, c.Model)
		require.Equal(t, time.Hour, c.Timeout, "the adapter's own")
	}
	require.Zero(t, cast("planner", StepOptions{}).Timeout)

	c = cast("planner", StepOptions{Agent: "missing"})
	require.Equal(t, protocol.CodeAgent, c.Problem.Code)
	require.NotEmpty(t, c.Problem.Hints)
	w.config.DefaultModel = ""
	require.Contains(t, cast("planner", StepOptions{}).Problem.Message, "has no model")
	w.config.DefaultAgent = ""
	require.Contains(t, cast("planner", StepOptions{}).Problem.Message, "no agent is configured")
}
