package config

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

// full contains every key.
const full = `# models
providers:
  openrouter:
    baseUrl: "https://openrouter.example/api/v1/"
    apiKey: ${ROUTER_KEY}
  openai: { baseUrl: https://openai.example/v1, apiKeyEnv: OPENAI_API_KEY }
  local:
    baseUrl: http://127.0.0.1:11434/v1
models:
  sonnet: { provider: openrouter, name: some/sonnet }
  mini:   { provider: openai, name: 4, stream: false, contextWindow: 128000, price: { input: 0.25, output: 2, cacheRead: 0.025 } }
  home:   { provider: local, name: llama }
agents:
  hermes:
    command: uwf-hermes
    args: [--cost, "$$5", $HOME]
    timeout: ${TIME}
    env: { TOKEN: "t-${WHO}", MODE: plain }
    protocol: named
    model: home
    permission: edits
    resume: false
  builtin: { command: uwf-builtin }
defaultAgent: builtin
agentOverrides:
  solve-issue: { developer: hermes }
defaultModel: sonnet
modelOverrides: { extract: mini, agent: mini, solve-issue.reviewer: home }
limits: { maxSteps: 50 }
timeout: 1h
builtin: { allowCommands: [go, git], maxTurns: 40, maxTokens: 200000, maxCostUsd: 1.5, maxTime: 20m }
`

func process(environ ...string) env.Env { return env.Env{Environ: environ} }

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func load(t *testing.T, text string, e env.Env) (protocol.Config, error) {
	t.Helper()
	return filesAt(write(t, "config.yaml", text), "").Load(t.Context(), e)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	e := process("ROUTER_KEY=rk-1", "WHO=me", "TIME=30m")
	c, err := load(t, full, e)
	require.NoError(t, err)
	no, cached := false, 0.025
	require.Equal(t, protocol.Model{Provider: "openai", Name: "4", Stream: &no, ContextWindow: 128000,
		Price: &protocol.Price{Input: 0.25, Output: 2, CacheRead: &cached}}, c.Models["mini"])
	require.Equal(t, &protocol.BuiltinConfig{AllowCommands: []string{"go", "git"}, MaxTurns: 40, MaxTokens: 200000, MaxCostUSD: 1.5, MaxTime: "20m"}, c.Builtin)
	hermes, err := ResolveAgent(c, "hermes", e)
	require.NoError(t, err)
	require.Equal(t, protocol.Agent{
		Command: "uwf-hermes", Args: []string{"--cost", "$5", "$HOME"}, Timeout: "30m",
		Env:      map[string]string{"TOKEN": "t-me", "MODE": "plain"},
		Protocol: "named", Model: "home", Permission: "edits", Resume: &no,
	}, hermes)
	require.Equal(t, "${ROUTER_KEY}", c.Providers["openrouter"].APIKey, "expanded when it is used")
	require.Equal(t, "hermes", c.AgentOverrides["solve-issue"]["developer"])
	require.Equal(t, 50, c.Limits.MaxSteps)
	require.Equal(t, []string{"go", "git"}, c.Builtin.AllowCommands)
}

func TestMissingAndEmptyFiles(t *testing.T) {
	t.Parallel()
	c, err := filesAt(filepath.Join(t.TempDir(), "none"), "").Load(t.Context(), process())
	require.NoError(t, err)
	require.Equal(t, protocol.Config{}, c)
	for _, text := range []string{"", "# nothing\n", "providers:\nagents: ~\n", "{}"} {
		c, err := load(t, text, process())
		require.NoError(t, err, text)
		require.Equal(t, protocol.Config{}, c, text)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	e := process("ROUTER_KEY=rk-1", "OPENAI_API_KEY=ok-1", "TIME=30m")
	c, err := load(t, full, e)
	require.NoError(t, err)

	got, err := ResolveModel(c, "sonnet", e)
	require.NoError(t, err)
	require.Equal(t, Endpoint{
		Alias: "sonnet", Provider: "openrouter", BaseURL: "https://openrouter.example/api/v1", APIKey: "rk-1",
		Model: "some/sonnet", KeySource: "config.yaml providers.openrouter.apiKey", Stream: true,
	}, got)
	require.Equal(t, "model sonnet (some/sonnet of provider openrouter)", got.String())

	got, err = ResolveModel(c, "mini", e)
	require.NoError(t, err)
	require.Equal(t, []any{"ok-1", "environment OPENAI_API_KEY", false, 128000}, []any{got.APIKey, got.KeySource, got.Stream, got.ContextWindow})

	got, err = ResolveModel(c, "home", e)
	require.NoError(t, err, "a provider without a key needs none")
	require.Empty(t, got.APIKey)

	require.Equal(t, "home", AgentModel(c, "builtin", "solve-issue", "reviewer"))
	require.Equal(t, "home", AgentModel(c, "hermes", "solve-issue", "developer"))
	require.Equal(t, "mini", AgentModel(c, "builtin", "solve-issue", "developer"))
	require.Equal(t, "sonnet", AgentModel(protocol.Config{DefaultModel: "sonnet"}, "", "", ""))

	require.Equal(t, "mini", ExtractModel(c))
	require.Equal(t, "extract", ExtractModel(protocol.Config{Models: map[string]protocol.Model{"extract": {}}}))
	require.Equal(t, "sonnet", ExtractModel(protocol.Config{DefaultModel: "sonnet"}))
	require.Equal(t, "extract", ExtractModel(protocol.Config{DefaultModel: "sonnet", Models: map[string]protocol.Model{"extract": {}}}))
	require.Empty(t, ExtractModel(protocol.Config{}))
	require.Empty(t, ExtractModel(protocol.Config{DefaultModel: "sonnet", ModelOverrides: map[string]string{"extract": "off"}}))
	_, err = Parse([]byte("modelOverrides: { extract: off }\n"), "config.yaml", env.Env{})
	require.NoError(t, err, "off names no model")
}

// A config with many providers works if only one key is set.
func TestUnsetVariablesMatterWhenUsed(t *testing.T) {
	t.Parallel()
	c, err := load(t, full, process("TIME=30m"))
	require.NoError(t, err)

	_, err = ResolveModel(c, "home", process())
	require.NoError(t, err)
	_, err = ResolveModel(c, "sonnet", process("ROUTER_KEY="))
	prosetest.Error(t, err, protocol.CodeInvalid)
	_, err = ResolveModel(c, "mini", process())
	prosetest.Error(t, err, protocol.CodeInvalid)
	_, err = ResolveAgent(c, "builtin", process())
	require.NoError(t, err)
	_, err = ResolveAgent(c, "hermes", process())
	prosetest.Error(t, err, protocol.CodeInvalid)
	_, err = load(t, full, process())
	prosetest.Error(t, err, protocol.CodeInvalid)

	_, err = ResolveAgent(c, "herms", process())
	prosetest.Error(t, err, protocol.CodeInvalid)
	_, err = ResolveModel(c, "sonet", process())
	var e *protocol.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, protocol.CodeInvalid, e.Code)
	prosetest.Text(t, e.Hints)
	_, err = ResolveModel(c, "", process())
	prosetest.Error(t, err, protocol.CodeInvalid)
}

func TestLoadIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := filesAt("config.yaml", "").Load(ctx, process())
	require.ErrorIs(t, err, context.Canceled)
}

// Cache markers are sent to endpoints known to need them, or as configured.
func TestCacheControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, setting string
		want          bool
	}{
		{"anthropic/claude-sonnet-5", "", true}, {"Claude-Opus-5", "auto", true}, {"openrouter/anthropic/claude-3", "", true},
		{"gpt-6", "", false}, {"anthropic/claude-sonnet-5", "off", false}, {"my-alias", "on", true},
	} {
		e, err := ResolveModel(protocol.Config{
			Providers: map[string]protocol.Provider{"p": {BaseURL: "http://localhost:1"}},
			Models:    map[string]protocol.Model{"m": {Provider: "p", Name: c.name, CacheControl: c.setting}},
		}, "m", env.Env{})
		require.NoError(t, err)
		require.Equal(t, c.want, e.CacheControl, "%v", c)
	}
}
