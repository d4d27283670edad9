package proc_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// The test binary also plays the child: childVar selects the part.
const childVar = "PROC_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVar) {
	case "report": // reports its input, and exits with 3
		stdin, err := io.ReadAll(os.Stdin)
		dir, _ := os.Getwd()
		fmt.Printf("args %q\nstdin %q %v\ndir %s\nenviron %d\n", os.Args[1:], stdin, err, filepath.Base(dir), len(os.Environ()))
		fmt.Fprintln(os.Stderr, "to stderr")
		os.Exit(3)
	case "adopt": // runs a shell command, and terminates its leftover processes
		adopts()
	default:
		os.Exit(m.Run())
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stdout, stderr := create(t, dir, "stdout"), create(t, dir, "stderr")
	work := filepath.Join(dir, "work")
	require.NoError(t, os.Mkdir(work, 0o755))
	child, err := proc.Start(proc.Command{
		Path: os.Args[0], Args: []string{"a b", ""}, Dir: work, Env: []string{childVar + "=report"},
		Stdout: stdout, Stderr: stderr,
	})
	require.NoError(t, err)
	require.Positive(t, child.Pid())
	status, err := child.Wait(t.Context(), time.Minute)
	require.NoError(t, err, "how the child ended is not an error of Wait")
	require.Equal(t, proc.Status{Code: 3}, status)
	got := content(t, stdout)
	require.Contains(t, got, `args ["a b" ""]`)
	require.Contains(t, got, `stdin "" <nil>`)
	require.Contains(t, got, "dir work\n")
	require.Equal(t, "to stderr\n", content(t, stderr))
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := proc.Start(proc.Command{Path: missing})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, missing)
}

func TestStopNobody(t *testing.T) {
	t.Parallel()
	gone := func() bool { return false }
	require.NoError(t, proc.StopGroup(t.Context(), 1<<22+1, time.Minute, gone), "what has ended needs no stop")
	require.NoError(t, proc.StopHolders(t.Context(), filepath.Join(t.TempDir(), "none"), 0, time.Minute, gone))
	for _, pid := range []int{-1, 0, 1} {
		require.Error(t, proc.StopGroup(t.Context(), pid, time.Minute, func() bool { return true }), "that would be everybody")
	}
}

func create(t *testing.T, dir, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}
