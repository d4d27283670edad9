//go:build unix

package agentproc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
)

// shell returns the invocation of a shell script.
func shell(t *testing.T, script string) Invocation {
	t.Helper()
	return Invocation{
		Command: "sh", Args: []string{"-c", script}, Dir: t.TempDir(), RunDir: t.TempDir(),
		Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: 100 * time.Millisecond,
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	inv := shell(t, `echo talk; echo trouble >&2; pwd >&2; echo '{"stepHash":"0123456789ABC"}'`)
	pid := 0
	inv.Started = func(p int) error { pid = p; return nil }
	out, err := Run(context.Background(), inv)
	require.NoError(t, err)
	require.Equal(t, protocol.Hash("0123456789ABC"), out.Result.StepHash)
	require.Equal(t, "trouble\n"+inv.Dir, out.Stderr)
	require.NotZero(t, pid)
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ script string }{
		"exit status":               {"echo oh no >&2; exit 7"},
		"without a word":            {"exit 7"},
		"several lines":             {"echo a >&2; echo b >&2; exit 7"},
		"the result's error counts": {`echo noise >&2; echo '{"error":"no key"}'; exit 1`},
		"a signal":                  {"kill -9 $$"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Run(context.Background(), shell(t, test.script))
			var exit *ExitError
			require.ErrorAs(t, err, &exit)
			prosetest.Error(t, err)
		})
	}
}

// A script without an interpreter line cannot be started.
func TestRunWhatCannotBeStarted(t *testing.T) {
	t.Parallel()
	inv := shell(t, "")
	inv.Command = filepath.Join(inv.Dir, "agent")
	programtest.Write(t, inv.Command, "echo hello\n")
	_, err := Run(context.Background(), inv)
	var missing *NotFoundError
	require.ErrorAs(t, err, &missing)
	require.ErrorContains(t, err, "exec format error")
	require.False(t, missing.Absent())
}

func TestRunStopsWhenItCannotBeRecorded(t *testing.T) {
	t.Parallel()
	inv := shell(t, "sleep 1000")
	full := errors.New("disk is full")
	pid := 0
	inv.Started = func(p int) error { pid = p; return full }
	_, err := Run(context.Background(), inv)
	require.ErrorIs(t, err, full)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

// Writes of an earlier run's descendants don't reach the files of this run.
func TestRunWritesToNewFiles(t *testing.T) {
	t.Parallel()
	inv := shell(t, "echo 0123456789ABC")
	path := filepath.Join(inv.RunDir, runfiles.StdoutFile)
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	old, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer old.Close()
	_, err = Run(context.Background(), inv)
	require.NoError(t, err)
	_, err = old.WriteString("late\n")
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "0123456789ABC\n", string(data))
}

// Not parallel: a program that another test starts holds every open file, and so the lock, until its exec.
func TestAgentInheritsTheLock(t *testing.T) {
	inv := shell(t, "echo at work; read line < gate; echo 0123456789ABC")
	gate := filepath.Join(inv.Dir, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	path := filepath.Join(inv.RunDir, "agent.lock")
	lock, err := durable.TryLock(path)
	require.NoError(t, err)
	inv.Lock = lock
	inv.Started = func(int) error {
		require.NoError(t, lock.Unlock()) // as if this process had been killed
		_, err := durable.TryLock(path)
		require.ErrorIs(t, err, durable.ErrLocked)
		return os.WriteFile(gate, []byte("go on\n"), 0o600)
	}
	_, err = Run(context.Background(), inv)
	require.NoError(t, err)
	held, err := durable.TryLock(path)
	require.NoError(t, err, "the agent's end gives the lock back")
	require.NoError(t, held.Unlock())
}

// Not parallel, as it measures allocations.
func TestResultBehindAGigabyteCostsNoMemory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, runfiles.StdoutFile)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<30))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("\n0123456789ABC\n" + strings.Repeat("\n", chunk))
	require.NoError(t, err)
	require.NoError(t, f.Close())

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := ReadResult(dir)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, protocol.Hash("0123456789ABC"), r.StepHash)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// A program that isn't an agent is stopped if it prints too much. Its last line is shown while it runs,
// without control sequences.
func TestPlain(t *testing.T) {
	t.Parallel()
	inv := shell(t, `while :; do echo 0123456789abcdef; done`)
	inv.Plain, inv.MaxPrinted = true, 1<<20
	_, err := Run(context.Background(), inv)
	prosetest.Error(t, err)

	inv = shell(t, `echo first; printf '10%%\r\033[31m20%%\n'; until test -e seen; do :; done`)
	inv.Plain = true
	inv.Printed = func(line string) {
		if line == "20%" {
			require.NoError(t, os.WriteFile(filepath.Join(inv.Dir, "seen"), nil, 0o600))
		}
	}
	out, err := Run(context.Background(), inv)
	require.NoError(t, err)
	require.Zero(t, out.ExitCode)
}
