package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/util/prosetest"
)

// fakeAgent is an agent for Claude Code that may be installed, based on the mock.
const fakeAgent = `#!/bin/sh
case "$1" in
--version) echo uwf-claude-code 1.0 ;;
--check) echo '{"program":"/usr/bin/claude","version":"2.1.197","problems":[]}' ;;
*) exec uwf-mock --mock-data "$SCENARIO" "$@" ;;
esac
`

const probeScenario = "steps:\n  - role: probe\n    output: \"---\\n$status: done\\nanswer: I am a script.\\n---\\n\"\n"

// setupOnTerminal types answers to uwf setup with a new home, and returns the output and the config.
func setupOnTerminal(t *testing.T, answers string, environ ...string) (shown, config string) {
	t.Helper()
	dir := t.TempDir()
	programtest.Write(t, filepath.Join(dir, "bin", "uwf-claude-code"), fakeAgent)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "probe.yaml"), []byte(probeScenario), 0o600))
	tty := openPTY(t)
	_, err := tty.master.WriteString(answers)
	require.NoError(t, err)
	cmd := exec.Command("uwf", "setup")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, tty.slave, tty.slave, tty.slave
	cmd.Env = append(os.Environ(), "UWF_HOME="+filepath.Join(dir, "home"), "HOME="+dir, "TERM=xterm", "SCENARIO="+filepath.Join(dir, "probe.yaml"),
		"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, environ...)
	err = cmd.Run()
	shown = tty.text(t)
	require.NoError(t, err, shown)
	text, err := os.ReadFile(filepath.Join(dir, "home", "config.yaml"))
	require.NoError(t, err)
	return shown, string(text)
}

// With a coding agent, pressing Enter twice is enough.
func TestSetupOfACodingAgent(t *testing.T) {
	t.Parallel()
	shown, config := setupOnTerminal(t, "9\n\n\n\n")
	require.Contains(t, shown, "1  claude-code  Claude Code 2.1.197\n")
	prosetest.Text(t, shown)
	require.Contains(t, shown, "Answer:  I am a script.")
	require.Contains(t, shown, "uwf run ./hello.yaml -p")
	require.Contains(t, config, "defaultAgent: claude-code")
}

// With a model, setup asks for it and for its key, without echo.
func TestSetupOfAModel(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-very-secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"data":[{"id":"big"},{"id":"small"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close)
	// The first becomes the default, and is the one that is tested.
	answers := "claude-code,builtin\ny\n" + server.URL + "/v1\nmine\nsk-very-secret\n\n7\n2\ngo,git\ny\n"
	if _, err := exec.LookPath("uwf-builtin"); err == nil {
		answers = "claude-code,builtin\n" + answers[len("claude-code,builtin\ny\n"):]
	}
	shown, config := setupOnTerminal(t, answers)
	prosetest.Text(t, shown)
	require.Contains(t, shown, filepath.Join(".agents", "skills", "uwf", "SKILL.md"))
	require.NotContains(t, shown, "sk-very-secret")
	require.Contains(t, shown, "Answer:  I am a script.")
	require.Contains(t, config, "{name: small, provider: mine}")
	require.Contains(t, config, "apiKey: sk-very-secret")
	require.Contains(t, config, "allowCommands: [go, git]")
}
