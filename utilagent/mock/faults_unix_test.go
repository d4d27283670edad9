//go:build unix

package mock_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// A deaf agent survives a request to stop; only a kill ends it.
func TestDeaf(t *testing.T) {
	t.Parallel()
	th := fresh(t)
	got := th.Play(func(e agentkit.Process) int {
		cmd := start(t, e, "steps: [{ hang: true, deaf: true, files: { ready: x } }]")
		await(t, filepath.Join(th.Cwd, "ready"))
		for range 3 {
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		}
		require.NoError(t, cmd.Process.Signal(syscall.Signal(0)))
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode()
	})
	require.Equal(t, -1, got.ExitCode)
	prosetest.Text(t, got.Stderr)
}

func TestGrandchildOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	th := fresh(t)
	play(t, th, "steps:\n  - { grandchild: { for: 60s, pidFile: pid }, "+answer+" }\n").Succeeded()
	raw, err := os.ReadFile(filepath.Join(th.Cwd, "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(raw))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func await(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, 20*time.Second, 5*time.Millisecond)
}
