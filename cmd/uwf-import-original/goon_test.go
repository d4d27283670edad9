package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/originaltest"
	"github.com/united-workforce/uwf/util/prosetest"
)

// built builds programs of the workspace and returns their directory.
func built(t *testing.T, programs ...string) string {
	t.Helper()
	bin := t.TempDir()
	for _, p := range programs {
		command := exec.CommandContext(t.Context(), "go", "build", "-o", bin+string(filepath.Separator), "../"+p)
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return bin
}

// Imported threads can be shown, read, forked, stepped and moved by the released programs, and uwf finds the
// importer next to itself.
func TestThreadsContinue(t *testing.T) {
	t.Parallel()
	bin := built(t, "uwf", "uwf-mock", "uwf-import-original")
	u := newUser(t, originaltest.Nodes)
	early := u.EarlyWorkflow("early")
	first := u.Steps("early", u.EarlyStart(early, "An early one"), originaltest.Step{Role: "writer", Status: "done", Early: true})
	u.Var("@uwf/thread/"+earlyThread, first[0], nil)
	asks := u.Steps("solve", u.idle[0], originaltest.Step{Role: "writer", Status: "unclear"})
	u.Var("@uwf/thread/"+suspendedThread, asks[0], map[string]string{"status": "suspended"})
	u.Save()
	scenario := filepath.Join(filepath.Dir(u.home), "scenario.yaml")
	require.NoError(t, os.WriteFile(scenario, []byte(strings.Join([]string{
		"repeat: true", "steps:",
		"  - { role: writer, output: \"---\\n$status: done\\n---\\nA shorter text\" }",
		"  - { role: reviewer, output: \"---\\n$status: approved\\n---\\nFine\" }", "",
	}, "\n")), 0o644))
	agent := []string{"--agent", "uwf-mock --mock-data " + scenario}

	uwf := func(args ...string) string {
		t.Helper()
		program := filepath.Join(bin, "uwf")
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		command := exec.CommandContext(t.Context(), program, append([]string{"--home", u.home}, args...)...)
		command.Env = append(os.Environ(), "OCAS_HOME=", "UWF_HOME=", "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		out, err := command.Output()
		var failed *exec.ExitError
		if err != nil {
			require.ErrorAs(t, err, &failed)
			require.NoError(t, err, string(failed.Stderr))
		}
		return string(out)
	}
	uwf("import-original", "--ocas", u.Ocas, "--uwf", u.Uwf)

	list := uwf("thread", "list")
	for _, id := range []string{idleThread, earlyThread, suspendedThread} {
		require.Contains(t, list, id)
	}
	require.Contains(t, uwf("thread", "show", suspendedThread), `"suspendedRole":"writer"`)
	show := uwf("thread", "show", idleThread)
	require.Contains(t, show, string(u.idle[2]))
	require.Contains(t, show, `"currentRole":"writer"`)
	read := uwf("thread", "read", idleThread)
	require.Contains(t, read, "First text")
	require.Contains(t, read, "reviewer")
	require.Contains(t, uwf("step", "show", string(u.idle[1])), "First text")
	prosetest.Text(t, uwf("step", "read", "--prompt", string(u.idle[1])))
	prosetest.Text(t, uwf("workflow", "show", "solve"))

	var fork struct{ Thread string }
	require.NoError(t, json.Unmarshal([]byte(uwf("thread", "fork", string(u.idle[1]))), &fork))
	require.Contains(t, uwf("thread", "show", fork.Thread), `"currentRole":"reviewer"`)

	require.Contains(t, uwf(append([]string{"thread", "step", idleThread, "-c", "2"}, agent...)...), `"done":true`)
	steps := uwf("thread", "steps", idleThread)
	require.Equal(t, 4, strings.Count(steps, `"agent":"uwf-mock"`), "two of the original's, two of ours")
	require.Contains(t, uwf("thread", "read", idleThread), "A shorter text")
	require.Contains(t, uwf(append([]string{"thread", "step", earlyThread}, agent...)...), `"role":"reviewer"`)
	u.sound()

	bundle := filepath.Join(filepath.Dir(u.home), "moved.uwfb")
	uwf("thread", "export", idleThread, "-o", bundle)
	uwf("verify", bundle)
	require.Contains(t, uwf("thread", "read", bundle), "First text")
	elsewhere := filepath.Join(filepath.Dir(u.home), "elsewhere")
	uwf("--home", elsewhere, "cas", "init", "--hash", "xxh64")
	uwf("--home", elsewhere, "thread", "import", bundle)
	require.Contains(t, uwf("--home", elsewhere, "thread", "read", idleThread), "A shorter text")
}
