package cliagent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// Programs started by a clone's settings could read the program's login.
func TestADirectoryThatStartsPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{".gemini/settings.json", ".claude/settings.json", ".opencode/plugin/x.js", ".codex/config.toml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, filepath.FromSlash(name))), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(`{"hooks":{}}`), 0o600))
	}
	for _, c := range []struct {
		program, variable      string
		words                  []string
		confined, refused, off bool
	}{
		{program: "gemini", confined: true, refused: true},
		{program: "gemini", confined: true, refused: true, variable: "GEMINI_CLI_TRUST_WORKSPACE=true"},
		{program: "gemini"}, // it trusts no directory by default
		{program: "gemini", words: []string{"--acp"}, confined: true, refused: true},
		{program: "opencode", refused: true},
		{program: "opencode", confined: true, refused: true},
		{program: "opencode", confined: true, variable: "OPENCODE_DISABLE_PROJECT_CONFIG=0"},
		{program: "claude", confined: true},
		{program: "claude", words: []string{"-p", "--setting-sources", "user"}, confined: true},
		{program: "claude-agent-acp", confined: true},
		{program: "another", confined: true},
		{program: "codex-acp", refused: true},
		{program: "codex-acp", off: true},
		{program: "opencode", off: true, refused: true},
	} {
		r := &runner{adapter: Adapter{Program: c.program}, words: c.words, cwd: dir, req: &agentkit.Request{Alias: "mine"}, env: env.Env{Environ: []string{c.variable}}}
		r.adapter.Distrusts = c.program == "claude" && c.words == nil
		if c.off {
			r.sandbox.Mode = "none"
		}
		if c.confined {
			r.confinement = &confinement{}
		}
		err := r.planted()
		require.Equal(t, c.refused, err != nil, "%+v", c)
		var failed *Error
		if err != nil {
			require.ErrorAs(t, err, &failed)
			require.Equal(t, errorkind.Denied, failed.Kind)
			require.NotEmpty(t, failed.Hint)
		}
	}
}
