package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/united-workforce/uwf/cmd/uwf/internal/engine"
)

// withSignals returns a context that ends at the first interrupt, terminate or hangup,
// with the signal as its cause. A second signal ends the process at once: what
// the agent finishes after that is adopted by the next step.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	done := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&engine.SignalError{Signal: s})
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}
