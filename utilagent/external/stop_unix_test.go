//go:build linux

package external_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/external"
)

// When the agent is stopped, nothing that the program has started is left, deaf to
// signals or gone to a session of its own; the next try goes on in the session.
func TestStopped(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "").plays("!deaf\nS {session}\nT I begin.\n!child\nC 1 x\n!hang", "S {session}\n"+good+"\n.")
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan *agentkittest.Outcome)
	go func() { ended <- b.RunContext(ctx, external.Options(b.adapter)) }()
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

// recorded reports whether the session is remembered.
func recorded(b *table) bool {
	files, err := filepath.Glob(filepath.Join(b.Home, "sessions", "uwf-toy", "ids", "*.json"))
	return err == nil && len(files) > 0
}

// dead reports whether a process has ended; a zombie has.
func dead(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err != nil || len(environ) == 0
}
