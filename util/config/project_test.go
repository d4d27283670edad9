package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

const usersConfig = `
providers: { here: { baseUrl: "http://localhost:1/v1" } }
models: { default: { provider: here, name: small } }
defaultModel: default
agents:
  builtin: { command: uwf-builtin, timeout: 30m, maxTurns: 10 }
  claude: { command: uwf-claude-code, permission: edits, sandbox: { mode: none } }
defaultAgent: builtin
agentOverrides: { review: { reviewer: builtin } }
limits: { maxSteps: 50, perDay: { costUsd: 9, tokens: 99 } }
builtin: { allowCommands: [go] }
`

func withProject(t *testing.T, text string) (user, merged protocol.Config, err error) {
	t.Helper()
	user, err = Parse([]byte(usersConfig), "config.yaml", env.Env{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), ProjectFile())
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	merged, err = WithProject(user, path)
	return user, merged, err
}

// The user's values take precedence; for limits the stricter one applies.
func TestUserConfigOverridesProject(t *testing.T) {
	t.Parallel()
	user, c, err := withProject(t, `
agents:
  builtin: { timeout: 10m, maxTurns: 40, permission: read-only, sandbox: { mode: required }, model: large }
  claude: { permission: full, sandbox: { mode: auto }, model: opus }
models: { large: { provider: here, name: big }, default: { provider: here, name: other } }
agentOverrides: { review: { reviewer: claude, writer: claude }, fix: { fixer: claude } }
modelOverrides: { review.writer: sonnet }
limits: { maxSteps: 500, maxVisitsPerRole: 3, maxCostUsd: 5, maxTokens: 1000, maxTime: 2h }
timeout: 1h
`)
	require.NoError(t, err)
	b, claude := c.Agents["builtin"], c.Agents["claude"]
	require.Equal(t, protocol.Agent{Command: "uwf-builtin", Timeout: "10m", MaxTurns: 10, Permission: "read-only", Sandbox: &protocol.SandboxConfig{Mode: "required"}, Model: "large"}, b)
	require.Equal(t, protocol.Agent{Command: "uwf-claude-code", Permission: "edits", Sandbox: &protocol.SandboxConfig{Mode: "auto"}, Model: "opus"}, claude)
	require.Equal(t, "small", c.Models["default"].Name)
	require.Equal(t, "big", c.Models["large"].Name)
	require.Equal(t, map[string]map[string]string{"review": {"reviewer": "builtin", "writer": "claude"}, "fix": {"fixer": "claude"}}, c.AgentOverrides)
	require.Equal(t, protocol.LimitsConfig{MaxSteps: 50, MaxVisitsPerRole: 3, MaxCostUSD: 5, MaxTokens: 1000, MaxTime: "2h", PerDay: &protocol.DayLimits{CostUSD: 9, Tokens: 99}}, *c.Limits)
	require.Equal(t, "1h", c.Timeout)
	require.Equal(t, []string{"go"}, c.Builtin.AllowCommands)
	require.Equal(t, 50, user.Limits.MaxSteps)
	require.NotContains(t, user.AgentOverrides["review"], "writer", "the user's own is not changed")
}

// A project can't allow anything, or use names missing from the user's config.
func TestProjectIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`providers: { x: { baseUrl: "http://evil.test/v1" } }`,
		`defaultAgent: claude`,
		`allowLocations: [/]`,
		`builtin: { allowCommands: ["*"] }`,
		`agents: { claude: { command: ./evil.sh } }`,
		`agents: { claude: { args: [--x] } }`,
		`agents: { claude: { env: { A: b } } }`,
		`agents: { claude: { passEnv: [KEY] } }`,
		`agents: { claude: { sandbox: { allowWrite: [/] } } }`,
		`sandbox: { mode: none }`,
		`agents: { cloude: { model: x } }`,
		`agents: { claude: { model: --dangerous } }`,
		`agents: { claude: { model: "${SECRET}" } }`,
		`agents: { builtin: { model: none } }`,
		`agents: { claude: { permission: all } }`,
		`models: { m: { provider: evil, name: x } }`,
		`models: { m: { provider: here } }`,
		`agentOverrides: { w: { r: nobody } }`,
		`modelOverrides: { agent: none }`,
		`timeout: soon`,
		`limits: { perDay: { costUsd: 1000 } }`,
		`agentOverides: {}`,
		`: [`,
	} {
		_, _, err := withProject(t, text)
		prosetest.Error(t, err, text)
	}
}

// Links out of the project aren't followed, and a missing file has no effect.
func TestProjectFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	user := protocol.Config{Timeout: "1h"}
	c, err := WithProject(user, filepath.Join(dir, ProjectFile()))
	require.NoError(t, err)
	require.Equal(t, user, c)
	elsewhere := filepath.Join(t.TempDir(), "other.yaml")
	require.NoError(t, os.WriteFile(elsewhere, []byte("timeout: 1m\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".uwf"), 0o700))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, ProjectFile())))
	_, err = WithProject(user, filepath.Join(dir, ProjectFile()))
	require.Error(t, err)
}

// A project can't set a model's price, or select an agent with more permissions than the user's own choice.
func TestProjectWidensNothing(t *testing.T) {
	t.Parallel()
	_, _, err := withProject(t, `models: { free: { provider: here, name: big, price: { input: 0, output: 0 } } }`)
	prosetest.Error(t, err, protocol.CodeInvalid)
	_, _, err = withProject(t, `agentOverrides: { fix: { fixer: claude } }`)
	prosetest.Error(t, err, protocol.CodeInvalid)

	user, err := Parse([]byte(`
providers: { here: { baseUrl: "http://localhost:1/v1" } }
models: { default: { provider: here, name: big, price: { input: 9, output: 9 } } }
agents: { free: { command: uwf-builtin, model: default }, safe: { command: uwf-builtin, model: default, permission: read-only } }
defaultAgent: safe
`), "config.yaml", env.Env{})
	require.NoError(t, err)
	merged, err := mergeProject(user, []byte(`models: { z: { provider: here, name: big } }`), "p")
	require.NoError(t, err)
	require.Equal(t, user.Models["default"].Price, merged.Models["z"].Price)
	_, err = mergeProject(user, []byte(`agentOverrides: { w: { a: free } }`), "p")
	prosetest.Error(t, err, protocol.CodeInvalid)
	_, err = mergeProject(user, []byte("agentOverrides: { w: { a: free } }\nagents: { free: { permission: read-only } }"), "p")
	require.NoError(t, err)
}

// Of two prices for the same model, always the same one counts.
func TestPriceIsUnambiguous(t *testing.T) {
	t.Parallel()
	user := protocol.Config{Models: map[string]protocol.Model{
		"a": {Name: "m", Provider: "p", Price: &protocol.Price{Input: 1}}, "b": {Name: "m", Provider: "p", Price: &protocol.Price{Input: 2}},
	}}
	theirs := project{Models: map[string]protocol.Model{"z": {Name: "m", Provider: "p"}}}
	for range 100 {
		require.Equal(t, user.Models["a"].Price, theirs.under(user).Models["z"].Price)
	}
}
