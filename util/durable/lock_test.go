package durable_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
)

func TestLockExcludes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks", "thread.lock")
	held, err := durable.TryLock(path)
	require.NoError(t, err, "the directory is made")

	_, err = durable.TryLock(path)
	require.ErrorIs(t, err, durable.ErrLocked)
	require.ErrorContains(t, err, path)

	require.NoError(t, held.Unlock())
	require.FileExists(t, path)
	again, err := durable.TryLock(path)
	require.NoError(t, err)
	require.NoError(t, again.RemoveAndUnlock())
	require.NoFileExists(t, path)
}

func TestLockWaitsUntilContextEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l")
	held, err := durable.TryLock(path)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = durable.Lock(ctx, path)
	require.ErrorIs(t, err, durable.ErrLocked)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	got := make(chan error, 1)
	go func() {
		next, err := durable.Lock(t.Context(), path)
		if err == nil {
			err = next.Unlock()
		}
		got <- err
	}()
	require.NoError(t, held.Unlock())
	require.NoError(t, <-got)
}

func TestRemovedLockFileIsNotShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l")
	held, err := durable.TryLock(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path), "as a holder does that removes and has yet to unlock")
	second, err := durable.TryLock(path)
	require.NoError(t, err, "a removed file locks nothing out")
	require.NoError(t, held.Unlock())
	_, err = durable.TryLock(path)
	require.ErrorIs(t, err, durable.ErrLocked)
	require.NoError(t, second.RemoveAndUnlock())
}

func TestLockAcrossProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "n")
	require.NoError(t, os.WriteFile(path, []byte("0"), 0o644))
	const processes, each = 6, 15
	var running []*exec.Cmd
	for range processes {
		c := child("count", path, strconv.Itoa(each))
		c.Stderr = new(bytes.Buffer)
		require.NoError(t, c.Start())
		running = append(running, c)
	}
	for _, c := range running {
		require.NoError(t, c.Wait(), "%s", c.Stderr)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(processes*each), string(text))
	require.NoFileExists(t, path+".lock")
}

func TestChildDoesNotInheritByAccident(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "thread.lock")
	held, err := durable.TryLock(path)
	require.NoError(t, err)
	c := child("hold")
	stdin, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())

	require.NoError(t, held.Unlock())
	next, err := durable.TryLock(path)
	require.NoError(t, err)
	require.NoError(t, next.Unlock())
	require.NoError(t, stdin.Close())
	require.NoError(t, c.Wait())
}

func TestHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l")
	_, err := durable.ReadHolder(path)
	require.ErrorIs(t, err, os.ErrNotExist)

	held, err := durable.TryLock(path)
	require.NoError(t, err)
	_, err = durable.ReadHolder(path)
	require.ErrorIs(t, err, durable.ErrNoHolder)

	since := time.Date(2026, 11, 21, 15, 4, 5, 0, time.UTC)
	for _, want := range []durable.Holder{{Pid: 1234567, Since: since}, {Pid: 7, Since: since.Add(time.Hour), Child: 9, Birth: "17"}, {Pid: 7, Since: since.Add(time.Hour)}} {
		require.NoError(t, held.Note(want))
		got, err := durable.ReadHolder(path)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Equal(t, "pid 7 since 2026-11-21T16:04:05Z", durable.Holder{Pid: 7, Since: since.Add(time.Hour)}.String())

	for _, text := range []string{"", "pid", "pid x since 2026-11-21T16:04:05Z\n", "pid 0 since 2026-11-21T16:04:05Z\n", "pid 7 since noon\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := durable.ReadHolder(path)
		require.ErrorIs(t, err, durable.ErrNoHolder, "%q", text)
	}
	require.NoError(t, held.Unlock())
}

func child(part string, args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), childVar+"="+part)
	return c
}

// LockExclusive repeatedly succeeds even if so many processes share the lock that it is never free by chance.
func TestLockExclusiveAmongManyShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l")
	var running []*exec.Cmd
	for n := range 64 {
		c := child("share", path, path+".end", path+strconv.Itoa(n))
		c.Stderr = new(bytes.Buffer)
		require.NoError(t, c.Start())
		running = append(running, c)
	}
	for n := range running {
		require.Eventually(t, func() bool { _, err := os.Stat(path + strconv.Itoa(n)); return err == nil }, time.Minute, time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 5 {
		held, err := durable.LockExclusive(ctx, path)
		require.NoError(t, err)
		require.NoError(t, held.Unlock())
	}
	require.NoError(t, os.WriteFile(path+".end", nil, 0o644))
	for _, c := range running {
		require.NoError(t, c.Wait(), "%s", c.Stderr)
	}
}

// If one process holds the lock for long, a waiting LockExclusive delays the others only for a moment.
func TestWaitingForALongHolder(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "lock")
	long, err := durable.LockShared(ctx, path)
	require.NoError(t, err)
	locked := make(chan error, 1)
	go func() {
		held, err := durable.LockExclusive(ctx, path)
		locked <- err
		if err == nil {
			locked <- held.Unlock()
		}
	}()
	require.Eventually(t, func() bool { _, err := os.Lstat(path + ".turn"); return err == nil }, time.Minute, time.Millisecond)
	const others = 40
	begun := time.Now()
	for range others {
		durable.YieldToExclusive(ctx, path)
		held, err := durable.LockShared(ctx, path)
		require.NoError(t, err)
		require.NoError(t, held.Unlock())
	}
	require.Less(t, time.Since(begun), others*100*time.Millisecond, "each waits for at most a turn")
	require.NoError(t, long.Unlock())
	require.NoError(t, <-locked)
	require.NoError(t, <-locked)
}
