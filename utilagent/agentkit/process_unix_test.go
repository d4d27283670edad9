//go:build unix

package agentkit_test

import (
	"bufio"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

func TestSignalsEndTheAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal os.Signal
		code   int
	}{{os.Interrupt, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
		// The agent inherits ignored signals: SIGHUP under nohup, SIGINT in the background.
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, c.signal)
		defer signal.Stop(caught)
		got := agentkittest.New(t, scenario{}).Play(func(e agentkit.Process) int {
			cmd := command(t, "waits", e)
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			require.NoError(t, err)
			defer out.Close()
			cmd.Stdout = out
			require.NoError(t, cmd.Start())
			awaitLine(t, out.Name(), "working")
			require.NoError(t, cmd.Process.Signal(c.signal))
			_ = cmd.Wait()
			return cmd.ProcessState.ExitCode()
		})
		require.Equal(t, c.code, got.ExitCode)
		prosetest.Text(t, got.Stderr)
	}
}

// A child that outlives the agent must not keep the lock that marks the agent as alive.
func TestChildrenDoNotHoldTheLock(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{})
	path := filepath.Join(th.RunDir, "agent.lock")
	held, err := durable.TryLock(path)
	require.NoError(t, err)
	th.Play(func(e agentkit.Process) int {
		cmd := command(t, "spawns", e)
		cmd.ExtraFiles = []*os.File{held.File()}
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode()
	}).Succeeded()
	require.NoError(t, held.Unlock())

	raw, err := os.ReadFile(filepath.Join(th.RunDir, "pid"))
	require.NoError(t, err)
	child, err := strconv.Atoi(string(raw))
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	require.NoError(t, syscall.Kill(child, 0), "the child must still be there for this test to mean anything")
	// A process started by another test has a copy of our descriptors until its exec, and would keep the
	// lock.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again, err := durable.Lock(ctx, path)
	require.NoError(t, err)
	require.NoError(t, again.Unlock())
}

// Without a reader on stdout the agent reports an error and fails, instead of being killed silently.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	got := agentkittest.New(t, scenario{}).Play(func(e agentkit.Process) int {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		cmd := command(t, "plain", e)
		cmd.Stdout = w
		_ = cmd.Run()
		require.NoError(t, w.Close())
		return cmd.ProcessState.ExitCode()
	})
	require.Equal(t, 1, got.ExitCode)
	require.Contains(t, got.Stderr, "broken pipe")
}

func awaitLine(t *testing.T, path, want string) {
	t.Helper()
	require.Eventually(t, func() bool {
		f, err := os.Open(path)
		if err != nil {
			return false
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if s.Text() == want {
				return true
			}
		}
		return false
	}, 20*time.Second, 5*time.Millisecond)
}
