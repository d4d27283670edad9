//go:build unix

package agentselect

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A plan must show what a run would use: the model of the command line overrides the config's.
func TestCastNamesAgentAndModel(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	program := filepath.Join(bin, "uwf-builtin")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	config := protocol.Config{
		Providers: map[string]protocol.Provider{"p": {BaseURL: "http://h/v1"}},
		Models:    map[string]protocol.Model{"small": {Provider: "p", Name: "s"}, "large": {Provider: "p", Name: "l"}},
		Agents: map[string]protocol.Agent{
			"own":      {Command: program},
			"told":     {Command: program, Args: []string{"--model", "large"}},
			"external": {Command: "/bin/sh", Model: "opus"},
			"claude":   {Command: filepath.Join(bin, "uwf-claude-code"), Model: "sonnet"},
			"missing":  {Command: "uwf-no-such-program"},
			"variable": {Command: "${PROGRAM}"},
		},
		DefaultAgent: "own", DefaultModel: "small",
		AgentOverrides: map[string]map[string]string{"test": {"worker": "told"}},
		ModelOverrides: map[string]string{"test.reviewer": "haiku", "test.tester": "large"},
	}
	caster := Caster{
		Env: env.Env{Dir: bin, Environ: []string{"PROGRAM=" + program}}, Dirs: home.Dirs{Home: bin},
		Config: func(context.Context) (protocol.Config, error) { return config, nil },
	}
	cast := func(role string, o Choices) Casting {
		return caster.Cast(t.Context(), protocol.Workflow{Name: "test"}, role, o)
	}

	c := cast("planner", Choices{})
	require.Nil(t, c.Problem)
	require.Equal(t, "own", c.Agent)
	require.Equal(t, program, c.Path)
	require.Equal(t, "p s", c.Model)
	require.Equal(t, "p l", cast("worker", Choices{}).Model)
	require.Equal(t, "opus", cast("planner", Choices{Agent: "external"}).Model)
	require.Equal(t, "external", cast("planner", Choices{Agent: "own", Agents: map[string]string{"planner": "external"}}).Agent)

	// The program determines the limits, even if its name is in a variable.
	config.Builtin = &protocol.BuiltinConfig{MaxCostUSD: 2}
	worst := caster.Worst(t.Context(), protocol.Workflow{Name: "test"}, protocol.Limits{}, cast("planner", Choices{Agent: "variable"}))
	require.NotNil(t, worst.CostUSD)
	require.Equal(t, 2.0, *worst.CostUSD)

	// Programs of others are shown as they would be run.
	require.NoError(t, os.WriteFile(filepath.Join(bin, "uwf-claude-code"), []byte("#!/bin/sh\n"), 0o755))
	for role, model := range map[string]string{"planner": "sonnet", "reviewer": "haiku", "tester": "l"} {
		c := cast(role, Choices{Agent: "claude"})
		require.Nil(t, c.Problem)
		require.Equal(t, model, c.Model)
		require.Equal(t, time.Hour, c.Timeout, "the adapter's own")
	}
	require.Zero(t, cast("planner", Choices{}).Timeout)

	c = cast("planner", Choices{Agent: "missing"})
	require.Equal(t, protocol.CodeAgent, c.Problem.Code)
	require.NotEmpty(t, hints.All("", c.Problem))
	config.DefaultModel = ""
	prosetest.Text(t, cast("planner", Choices{}).Problem.Message)
	config.DefaultAgent = ""
	prosetest.Text(t, cast("planner", Choices{}).Problem.Message)
}
