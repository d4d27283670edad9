//go:build linux

package cliagent_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// When the agent is stopped, no process of the program survives, even one that ignores signals or started a
// new session. The next try continues the session.
func TestStopped(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "").plays("!deaf\nS {session}\nT I begin.\n!child\nC 1 x\n!hang", "S {session}\n"+good+"\n.")
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan *agentkittest.Outcome)
	go func() { ended <- b.RunContext(ctx, cliagent.Options(b.adapter)) }()
	child := filepath.Join(b.dir, "child")
	require.Eventually(t, func() bool { return exists(child) && recorded(b) }, time.Minute, 5*time.Millisecond)
	stop(errors.New("the user's reason"))
	(<-ended).Failed("the user's reason")
	data, err := os.ReadFile(child)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(data))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return dead(pid) }, time.Minute, 5*time.Millisecond, "the child in a session of its own")

	b.step().Succeeded()
	calls := b.heard(2)
	require.Equal(t, []string{"--resume", last(calls[0].Args)}, calls[1].Args[len(calls[1].Args)-2:])
}

// recorded reports whether the session was stored.
func recorded(b *table) bool {
	files, err := filepath.Glob(filepath.Join(b.Home, "sessions", "uwf-toy", "records", "*.json"))
	return err == nil && len(files) > 0
}

// dead reports whether a process has ended, or is a zombie.
func dead(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err != nil || len(environ) == 0
}

// Processes left by a killed adapter would interfere with the next try, and those left in the background with
// the next role: both are killed.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "").plays("S {session}\n"+good+"\n!child\n.", "S {session}\n"+good+"\n.")
	orphan := exec.Command(os.Args[0], "sleeper")
	orphan.Env = append(os.Environ(), playVariable+"="+b.dir, "UWF_STARTED_FOR="+b.RunDir)
	detach(orphan)
	require.NoError(t, orphan.Start())
	got := b.step().Succeeded()
	require.Error(t, orphan.Wait(), "it was killed")
	data, err := os.ReadFile(filepath.Join(b.dir, "child"))
	require.NoError(t, err)
	child, err := strconv.Atoi(string(data))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return dead(child) }, time.Minute, 5*time.Millisecond)
	prosetest.Text(t, got.Stderr)
}
