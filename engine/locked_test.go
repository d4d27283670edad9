//go:build unix

package engine

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// A step ends on request or after its timeout even if the lock of the heads is held. The agent's result is
// adopted later.
func TestHomeLockTimeout(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]protocol.Code{"signal": protocol.CodeTerminated, "timeout": protocol.CodeTimeout} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "!gate:ready@open")
			var ahead atomic.Int64 // added to the clock
			w.Reader.Env.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			id := w.start()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended := make(chan error, 1)
			go func() {
				_, err := w.Step(ctx, id, StepOptions{Timeout: 10 * time.Minute})
				ended <- err
			}()
			w.eventually("the agent works", func() bool { return len(w.runs()) > 1 })
			held, err := durable.TryLock(filepath.Join(w.Reader.Dirs.Locks(), "threads.lock"))
			require.NoError(t, err)
			if want == protocol.CodeTimeout {
				ahead.Store(int64(time.Hour))
			}
			w.open("open")
			w.eventually("the agent has finished", func() bool { _, done := w.Reader.RunDir(id).Finished(); return done })
			if want == protocol.CodeTerminated {
				cancel(&SignalError{Signal: syscall.SIGTERM})
			}
			err = <-ended
			require.ErrorIs(t, err, &protocol.Error{Code: want}) // with a hint, unless the signal came before the agent's end was noticed
			require.NoError(t, held.Unlock())
			dir := w.Reader.RunDir(id)
			w.eventually("the agent has ended", func() bool { return !dir.SurelyAlive(t.Context(), dir.Read()) })
			require.True(t, w.mustStep(id, StepOptions{}).Adopted)
		})
	}
}
