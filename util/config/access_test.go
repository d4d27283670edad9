package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestAccess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		agent    protocol.Agent
		builtin  protocol.BuiltinConfig
		confined bool
	}{
		{protocol.Agent{Command: "uwf-codex"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-codex", Sandbox: &protocol.SandboxConfig{AllowWrite: []string{"~/x"}}}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-codex"}, protocol.BuiltinConfig{}, false},
		{protocol.Agent{Command: "uwf-codex", Sandbox: &protocol.SandboxConfig{Mode: "required"}}, protocol.BuiltinConfig{}, false},
		{protocol.Agent{Command: "uwf-codex", Sandbox: &protocol.SandboxConfig{Mode: "none"}}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-codex", Permission: "read-only"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-claude-code", Permission: "read-only"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-gemini", Permission: "edits"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-cursor"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-acp", Args: []string{"--auth", "key", "--", "npx", "-y", "@google/gemini-cli@0.61.0"}}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-exec", Args: []string{"--", "mine"}}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-exec", Args: []string{"mine", "claude"}, Sandbox: &protocol.SandboxConfig{Mode: "auto"}}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-exec", Args: []string{"--", "claude"}, Permission: "read-only"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-exec", Args: []string{"--", "claude"}, Permission: "edits", Sandbox: &protocol.SandboxConfig{Mode: "none"}}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-exec", Args: []string{"mine"}, Sandbox: &protocol.SandboxConfig{Mode: "none"}}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "/x/other"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-builtin"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-builtin"}, protocol.BuiltinConfig{AllowCommands: []string{"go", "git"}}, true},
		{protocol.Agent{Command: "uwf-builtin", Env: map[string]string{"UWF_BUILTIN_ALLOW_SHELL": "1"}, Sandbox: &protocol.SandboxConfig{Mode: "none"}}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-react", Permission: "read-only"}, protocol.BuiltinConfig{}, true},
		{protocol.Agent{Command: "uwf-llm"}, protocol.BuiltinConfig{}, true},
	} {
		settings := protocol.Config{Agents: map[string]protocol.Agent{"a": c.agent}, Builtin: &c.builtin}
		prosetest.Text(t, config.Access(settings, "a", append([]string{c.agent.Command}, c.agent.Args...), env.Env{}, config.System{Confines: c.confined, Sockets: true, Namespaces: c.confined}))
	}
}

// What each mode allows on systems without namespaces.
func TestAccessWithoutNamespaces(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{protocol.SandboxAuto, protocol.SandboxLandlock, protocol.SandboxRequired} {
		for _, s := range []config.System{{Confines: true}, {Confines: true, Sockets: true}, {}} {
			settings := protocol.Config{
				Sandbox: &protocol.SandboxConfig{Mode: mode}, Builtin: &protocol.BuiltinConfig{AllowCommands: []string{"*"}},
			}
			prosetest.Text(t, config.CommandAccess(settings, s))
			for _, command := range []string{"uwf-codex", "uwf-builtin"} {
				settings.Agents = map[string]protocol.Agent{"a": {Command: command}}
				prosetest.Text(t, config.Access(settings, "a", []string{command}, env.Env{}, s))
			}
		}
	}
}

// mode: required requires everything that can be enforced; the user's setting takes precedence.
func TestSocketsAreClosedIfConfinementIsRequired(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	old, newer := config.System{Confines: true}, config.System{Confines: true, Sockets: true}
	for _, c := range []struct {
		mode       string
		b          *protocol.BuiltinConfig
		old, newer bool
	}{
		{"", nil, false, false},
		{"auto", &protocol.BuiltinConfig{}, false, false},
		{"required", nil, true, false},
		{"required", &protocol.BuiltinConfig{NoUnixSockets: &no}, false, false},
		{"", &protocol.BuiltinConfig{NoUnixSockets: &yes}, true, true},
		{"none", &protocol.BuiltinConfig{NoUnixSockets: &yes}, false, false},
	} {
		require.Equal(t, c.old, config.NoUnixSockets(c.b, c.mode, old))
		require.Equal(t, c.newer, config.NoUnixSockets(c.b, c.mode, newer))
		settings := protocol.Config{Builtin: c.b, Sandbox: &protocol.SandboxConfig{Mode: c.mode}, Agents: map[string]protocol.Agent{"a": {Command: "uwf-builtin"}}}
		e := env.Env{Environ: []string{"UWF_BUILTIN_ALLOW_SHELL=1"}}
		if c.mode != "none" && c.mode != "required" {
			require.Equal(t, !c.old, strings.Contains(config.Access(settings, "a", []string{"uwf-builtin"}, e, old), "sockets"))
		}
		require.NotContains(t, config.Access(settings, "a", []string{"uwf-builtin"}, e, newer), "sockets")
	}
}
