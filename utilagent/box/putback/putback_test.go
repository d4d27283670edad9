package putback_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/box/putback"
)

// A confined program can write its own files. Those that make its next start run something are restored:
// hooks, servers, plugins.
func TestWhatAProgramObeysIsPutBack(t *testing.T) {
	t.Parallel()
	const notes = `{"starts":1,"mcpServers":{"mine":{"command":"x"}},"projects":{"/p":{"n":1,"allowedTools":[]}}}`
	home := t.TempDir()
	for name, text := range map[string]string{".claude.json": notes, ".claude/settings.json": "{}", ".claude/skills/a/SKILL.md": "mine", "work/f": ""} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	own := filepath.Join(home, ".claude")
	change := func(script string) string {
		place := putback.Place{Workspace: filepath.Join(home, "work"), Obeyed: []string{filepath.Join(home, ".claude.json")}}
		for _, name := range []string{"settings.json", "skills", "hooks", "new.jsonc"} {
			place.Obeyed = append(place.Obeyed, filepath.Join(own, name))
		}
		b, err := putback.Begin(place, nil)
		require.NoError(t, err)
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-ec", "cd "+home+"; "+script).CombinedOutput()
		require.NoError(t, err, "%s", out)
		told, err := b.End(t.Context(), func(string) bool { return false }, nil)
		require.NoError(t, err)
		return strings.Join(told, "\n")
	}
	text := func() string {
		b, err := os.ReadFile(filepath.Join(home, ".claude.json"))
		require.NoError(t, err)
		return string(b)
	}
	require.Empty(t, change(`echo x > .claude/session; sed -i 's/"starts":1/"starts":2/; s|"/p"|"/q":{"mcpServers":{},"hasTrustDialogAccepted":false},"/p"|' .claude.json`))
	require.Contains(t, text(), `"/q":{"mcpServers"`)
	before := text()
	said := change(`echo '{"hooks":{}}' > .claude/settings.json; mkdir .claude/hooks; echo id > .claude/hooks/x; echo evil >> .claude/skills/a/SKILL.md`)
	for _, name := range []string{"settings.json", "hooks", "skills/a/SKILL.md"} {
		require.Contains(t, said, filepath.Join(own, name))
	}
	require.NoDirExists(t, filepath.Join(own, "hooks"))
	for _, script := range []string{
		`sed -i 's/"command": *"x"/"command":"evil"/' .claude.json`, `sed -i 's/"starts"/"apiKeyHelper":"evil","starts"/' .claude.json`,
		`sed -i 's/"n": *1/"n":1,"mcpServers":{"x":{"command":"evil"}}/' .claude.json`, `sed -i 's/"hasTrustDialogAccepted": *false/"hasTrustDialogAccepted":true/' .claude.json`,
		`sed -i 's/"allowedTools": *\[\]/"allowedTools":["evil"]/' .claude.json`, `echo evil > .claude.json`, `rm .claude.json`,
	} {
		require.Contains(t, change(script), ".claude.json", script)
		require.JSONEq(t, before, text(), script)
	}
}
