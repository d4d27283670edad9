package proc_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// After a signal, UntilSignal doesn't wait for a command that ignores its context; for one that finishes it
// returns the status.
func TestUntilSignal(t *testing.T) {
	t.Parallel()
	soon := func() time.Duration { return 0 }
	never := func() time.Duration { return time.Hour }
	for s, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		ctx, cancel := context.WithCancelCause(t.Context())
		deaf := make(chan struct{})
		t.Cleanup(func() { close(deaf) })
		status := proc.UntilSignal(ctx, soon, func() int {
			cancel(&proc.SignalError{Signal: s})
			<-deaf
			return 0
		})
		require.Equal(t, want, status)
		require.Equal(t, 7, proc.UntilSignal(ctx, never, func() int { return 7 }), "it came to its end")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 3, proc.UntilSignal(ctx, soon, func() int { return 3 }), "no signal: it is waited for")
}
