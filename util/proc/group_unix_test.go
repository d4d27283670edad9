//go:build unix

package proc_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
)

// soon is far below the grace periods of these tests, and far above the time they need.
const soon = time.Minute

// shell starts a script that prints "ready" at some point. It gets a PATH for sleep.
func shell(t *testing.T, script string, change ...func(*proc.Command)) (*proc.Child, func() string) {
	t.Helper()
	w, next := lines(t)
	c := proc.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: w}
	for _, f := range change {
		f(&c)
	}
	child, err := proc.Start(c)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return child, next
}

func session(c *proc.Command) { c.Session = true }

func TestWait(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		want   proc.Status
	}{
		"exit":   {"exit 0", proc.Status{}},
		"fail":   {"exit 7", proc.Status{Code: 7}},
		"signal": {"kill -9 $$", proc.Status{Code: -1, Signal: "killed"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child, _ := shell(t, tt.script)
			status, err := child.Wait(t.Context(), time.Minute)
			require.NoError(t, err)
			require.Equal(t, tt.want, status)
		})
	}
}

func TestWaitStops(t *testing.T) {
	t.Parallel()
	cause := errors.New("the user's reason")
	tests := map[string]struct {
		script string
		grace  time.Duration
		cause  error
		want   proc.Status
	}{
		"one that does as it is asked": {
			`trap "exit 5" TERM; echo ready; while :; do sleep 0.01; done`, time.Hour, cause, proc.Status{Code: 5},
		},
		"one that says nothing": {
			`echo ready; exec sleep 1000`, time.Hour, cause, proc.Status{Code: -1, Signal: "terminated"},
		},
		"an interrupt is passed on": {
			`trap "exit 6" INT; trap "" TERM; echo ready; while :; do sleep 0.01; done`, time.Hour,
			&proc.SignalError{Signal: os.Interrupt}, proc.Status{Code: 6},
		},
		"one that ignores signals": {
			`trap "" TERM INT HUP; echo ready; while :; do sleep 0.01; done`, 50 * time.Millisecond, cause,
			proc.Status{Code: -1, Signal: "killed"},
		},
		"one that is stopped": {
			`trap "exit 8" TERM; echo ready; while :; do kill -STOP $$; done`, time.Hour, cause, proc.Status{Code: 8},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child, next := shell(t, tt.script)
			require.Equal(t, "ready", next())
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(tt.cause)
			began := time.Now()
			status, err := child.Wait(ctx, tt.grace)
			require.ErrorIs(t, err, tt.cause)
			require.Equal(t, tt.want, status)
			require.Less(t, time.Since(began), soon)
			require.True(t, ended(child.Pid()))
		})
	}
}

func TestWaitEndsWhatTheChildLeaves(t *testing.T) {
	t.Parallel()
	child, next := shell(t, `trap "" TERM HUP; sleep 1000 & echo $!; exit 0`)
	left := number(t, next())
	status, err := child.Wait(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Equal(t, proc.Status{}, status)
	require.True(t, ended(left))
}

// The leader exits immediately; another member needs a moment to clean up.
func TestWaitGivesTheWholeGroupItsGrace(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "in-order")
	child, next := shell(t, `
		(trap 'sleep 0.1; : >"`+done+`"; exit' TERM; echo ready; while :; do sleep 0.01; done) &
		trap "exit 0" TERM; while :; do sleep 0.01; done`)
	require.Equal(t, "ready", next())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := child.Wait(ctx, time.Hour)
	require.ErrorIs(t, err, context.Canceled)
	require.FileExists(t, done)
}

func TestWaitKillsMembersThatOutstayTheGrace(t *testing.T) {
	t.Parallel()
	child, next := shell(t, `
		(trap "" TERM; echo ready; while :; do sleep 0.01; done) & echo $!
		trap "exit 0" TERM; while :; do sleep 0.01; done`)
	words := []string{next(), next()}
	var left int
	for _, w := range words {
		if w != "ready" {
			left = number(t, w)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := child.Wait(ctx, 50*time.Millisecond)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, ended(left))
}

func TestStopGroup(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"asked":  `echo ready; exec sleep 1000`,
		"killed": `trap "" TERM; echo ready; while :; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child, next := shell(t, script)
			require.Equal(t, "ready", next())
			waited := make(chan error, 1)
			go func() {
				_, err := child.Wait(t.Context(), time.Hour)
				waited <- err
			}()
			alive := func() bool { return !ended(child.Pid()) }
			require.NoError(t, proc.StopGroup(t.Context(), child.Pid(), 50*time.Millisecond, alive))
			require.NoError(t, <-waited)
		})
	}
}

func TestStopGroupGivesUp(t *testing.T) {
	t.Parallel()
	child, next := shell(t, `trap "" TERM; echo ready; while :; do sleep 0.01; done`)
	require.Equal(t, "ready", next())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := proc.StopGroup(ctx, child.Pid(), time.Hour, func() bool { return true })
	require.ErrorIs(t, err, context.DeadlineExceeded)

	ended, stop := context.WithCancel(t.Context())
	stop()
	_, err = child.Wait(ended, 0)
	require.ErrorIs(t, err, context.Canceled)
}

func TestStopGroupRefusesOurOwn(t *testing.T) {
	t.Parallel()
	require.Error(t, proc.StopGroup(t.Context(), syscall.Getpgrp(), time.Hour, func() bool { return true }))
}

// An agent holds its lock; its engine was killed before it recorded the agent's id. A process that only waits
// for the lock must not be stopped.
func TestStopHolders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.lock")
	held, err := durable.TryLock(path)
	require.NoError(t, err)
	script := `(trap "" TERM; while :; do sleep 0.01; done) & trap "" TERM; echo ready; while :; do sleep 0.01; done`
	agent, next := shell(t, script, session, func(c *proc.Command) { c.Inherit = []*os.File{held.File()} })
	require.Equal(t, "ready", next())
	require.NoError(t, held.Unlock())

	waiting, err := os.Open(path)
	require.NoError(t, err)
	defer waiting.Close()
	waiter, next := shell(t, "echo ready; exec sleep 1000", func(c *proc.Command) { c.Inherit = []*os.File{waiting} })
	require.Equal(t, "ready", next())

	reaped := make(chan error, 1)
	go func() {
		_, err := agent.Wait(t.Context(), time.Hour)
		reaped <- err
	}()
	alive := func() bool {
		lock, err := durable.TryLock(path)
		if err != nil {
			return true
		}
		return lock.Unlock() != nil
	}
	require.True(t, alive())
	pid := 0
	if runtime.GOOS != "linux" {
		pid = agent.Pid() // this system doesn't show lock holders
	}
	require.NoError(t, proc.StopHolders(t.Context(), path, pid, 50*time.Millisecond, alive))
	require.NoError(t, <-reaped)
	require.False(t, alive())

	require.False(t, ended(waiter.Pid()), "it does not hold the lock")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = waiter.Wait(ctx, time.Hour)
	require.ErrorIs(t, err, context.Canceled)
}

// ended reports whether a process has exited; zombies count.
func ended(pid int) bool {
	err := syscall.Kill(pid, 0)
	return errors.Is(err, syscall.ESRCH) || isZombie(pid)
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// lines returns a function that yields a child's output line by line.
func lines(t *testing.T) (write *os.File, next func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	scanner := bufio.NewScanner(r)
	return w, func() string {
		t.Helper()
		require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
		require.True(t, scanner.Scan(), "the child ended without a word: %v", scanner.Err())
		return scanner.Text()
	}
}

// A child can read its input, and can be signaled before it is stopped.
func TestStdinAndAsk(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	child, next := shell(t, `trap "echo asked" INT; read word; echo "$word"; while :; do sleep 0.01; done`, func(c *proc.Command) { c.Stdin = r })
	require.NoError(t, r.Close())
	_, err = w.WriteString("ready\n")
	require.NoError(t, err)
	require.Equal(t, "ready", next())
	require.NoError(t, child.Signal(os.Interrupt))
	require.Equal(t, "asked", next())
	require.NoError(t, w.Close())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = child.Wait(ctx, time.Millisecond)
	require.ErrorIs(t, err, context.Canceled)
}
