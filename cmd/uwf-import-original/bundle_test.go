package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/originaltest"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Imported threads can be exported as bundles, sealed, and redacted.
func TestThreadsTravel(t *testing.T) {
	t.Parallel()
	bin := built(t, "uwf", "uwf-import-original")
	u := newUser(t, originaltest.Nodes)
	early := u.EarlyWorkflow("early")
	first := u.Steps("early", u.EarlyStart(early, "An early one"), originaltest.Step{Role: "writer", Status: "done", Early: true})
	u.Var("@uwf/thread/"+earlyThread, first[0], nil)
	u.Save()
	file := filepath.Join(filepath.Dir(u.home), "all.uwfb")
	other := filepath.Join(filepath.Dir(u.home), "other")
	uwf := func(home string, args ...string) string {
		t.Helper()
		program := filepath.Join(bin, "uwf")
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		command := exec.CommandContext(t.Context(), program, append([]string{"--home", home}, args...)...)
		command.Env = append(os.Environ(), "OCAS_HOME=", "UWF_HOME=", "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	uwf(u.home, "import-original", "--ocas", u.Ocas, "--uwf", u.Uwf)
	uwf(u.home, "thread", "export", "--all", "-o", file)
	verified := uwf(other, "verify", file)
	require.Contains(t, verified, idleThread)
	require.Contains(t, verified, `"hash":"xxh64"`)
	require.Contains(t, uwf(other, "thread", "read", "--bundle", file, idleThread), "First text")
	uwf(other, "thread", "import", file)
	require.Contains(t, uwf(other, "thread", "read", idleThread), "First text")
	require.Contains(t, uwf(other, "thread", "list", "--all"), earlyThread)
	prosetest.Text(t, uwf(other, "cas", "fsck", "--format", "text"))
	require.Equal(t, uwf(u.home, "thread", "seal", idleThread, "--format", "text"), uwf(other, "thread", "seal", idleThread, "--format", "text"))
}
