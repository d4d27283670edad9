//go:build unix

package proc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

func sh(script string) proc.Command {
	return proc.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}, Dir: "/", Session: true}
}

func TestRun(t *testing.T) {
	t.Parallel()
	out, err := proc.Run(t.Context(), sh("cat; echo no >&2; exit 3"), strings.NewReader("hello"), 100, time.Second)
	require.NoError(t, err)
	require.Equal(t, proc.Output{Stdout: []byte("hello"), Stderr: []byte("no\n"), Status: proc.Status{Code: 3}}, out)

	out, err = proc.Run(t.Context(), sh("head -c 300000 /dev/zero; echo x >&2"), nil, 1000, time.Second)
	require.NoError(t, err)
	require.Len(t, out.Stdout, 1000)
	require.True(t, out.Cut)

	_, err = proc.Run(t.Context(), sh("exit"), strings.NewReader(strings.Repeat("x", 1<<20)), 10, time.Second)
	require.NoError(t, err, "it reads nothing")

	_, err = proc.Run(t.Context(), proc.Command{Path: "/nowhere"}, nil, 10, time.Second)
	require.Error(t, err)
}

// Neither a program that doesn't exit nor its leftover processes block Run.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := proc.Run(ctx, sh("echo x; sleep 60"), nil, 10, 100*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	began := time.Now()
	out, err := proc.Run(t.Context(), sh("sleep 30 & echo x"), nil, 10, 100*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, "x\n", string(out.Stdout))
	require.Less(t, time.Since(began), 20*time.Second)
}
