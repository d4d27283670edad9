package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A command ended by a signal has the signal's exit status, whatever else failed.
func TestAfterSignal(t *testing.T) {
	t.Parallel()
	for signal, want := range map[os.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130, syscall.SIGHUP: 129} {
		ctx, cancel := context.WithCancelCause(t.Context())
		failure := &protocol.Error{Code: protocol.CodeInvalid, Message: "x"}
		require.Equal(t, 4, afterSignal(ctx, failure).Code.ExitCode())
		cancel(&engine.SignalError{Signal: signal})
		require.Equal(t, want, afterSignal(ctx, failure).Code.ExitCode())
		require.Equal(t, protocol.CodeInvalid, failure.Code)
		e := afterSignal(ctx, fmt.Errorf("roots: %w", context.Canceled))
		require.Equal(t, want, e.Code.ExitCode())
		prosetest.Text(t, e.Message, signal)
		require.Equal(t, want, afterSignal(ctx, errors.New("context canceled")).Code.ExitCode())
	}
}
