package proc

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// WithSignals returns a context that ends at the first interrupt, terminate or
// hangup, with a [*SignalError] as its cause. A second signal ends the process at
// once, as if it had not been asked for.
func WithSignals(parent context.Context) (context.Context, func()) {
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
			cancel(&SignalError{Signal: s})
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// UntilSignal runs a command and returns its exit status. Once a signal has ended
// ctx, the command has as long as patience says to come to its own end; then
// UntilSignal returns without it: some work looks at no context, and whoever has
// typed Ctrl-C waits. That is safe where a kill is, and the process must end then.
func UntilSignal(ctx context.Context, patience func() time.Duration, command func() int) int {
	ended := make(chan int, 1)
	go func() { ended <- command() }()
	select {
	case status := <-ended:
		return status
	case <-ctx.Done():
	}
	var s *SignalError
	if !errors.As(context.Cause(ctx), &s) {
		return <-ended
	}
	late := time.NewTimer(patience())
	defer late.Stop()
	select {
	case status := <-ended:
		return status
	case <-late.C:
		return s.Code().ExitCode()
	}
}
