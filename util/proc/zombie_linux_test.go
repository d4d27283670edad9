package proc_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// isZombie reports whether a process is a zombie. Killed processes stay zombies if init doesn't reap.
func isZombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	return strings.Contains(string(text), ") Z ")
}

// If a child with its own session fails, is killed or is stopped, all groups of the session are terminated.
func TestSessionEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	// With job control, the shell gives each job its own group.
	const jobs = `set -m; (trap "" TERM HUP; while :; do sleep 0.01; done) & echo $!; `
	t.Run("that fails", func(t *testing.T) {
		t.Parallel()
		child, next := shell(t, jobs+"exit 1", session)
		job := number(t, next())
		_, err := child.Wait(t.Context(), time.Hour)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return ended(job) }, soon, time.Millisecond)
	})
	t.Run("that is stopped", func(t *testing.T) {
		t.Parallel()
		child, next := shell(t, jobs+`echo ready; while :; do sleep 0.01; done`, session)
		job := number(t, next())
		require.Equal(t, "ready", next())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := child.Wait(ctx, 50*time.Millisecond)
		require.ErrorIs(t, err, context.Canceled)
		require.Eventually(t, func() bool { return ended(job) }, soon, time.Millisecond)
	})
	t.Run("that is not ours", func(t *testing.T) {
		t.Parallel()
		child, next := shell(t, jobs+`trap "" TERM; echo ready; while :; do sleep 0.01; done`, session)
		job := number(t, next())
		require.Equal(t, "ready", next())
		reaped := make(chan error, 1)
		go func() {
			_, err := child.Wait(t.Context(), time.Hour)
			reaped <- err
		}()
		alive := func() bool { return !ended(child.Pid()) }
		require.NoError(t, proc.StopGroup(t.Context(), child.Pid(), 50*time.Millisecond, alive))
		require.NoError(t, <-reaped)
		require.Eventually(t, func() bool { return ended(job) }, soon, time.Millisecond)
	})
}

func TestSessionHasNoTerminal(t *testing.T) {
	t.Parallel()
	child, next := shell(t, `if (: </dev/tty) 2>/dev/null; then echo terminal; else echo none; fi`, session)
	require.Equal(t, "none", next())
	_, err := child.Wait(t.Context(), time.Hour)
	require.NoError(t, err)
}
