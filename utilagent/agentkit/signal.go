package agentkit

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/united-workforce/uwf/util/proc"
)

// signalError is the cause of a context that a signal cancelled.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return "stopped by signal: " + e.Signal.String() }

func (e signalError) exitCode() int {
	return (&proc.SignalError{Signal: e.Signal}).Code().ExitCode()
}

// untilSignal returns a context that the first signal cancels. After it signals
// have their usual effect again, so that a second one ends an agent that does
// not listen.
//
// A reader that goes away must not kill the agent without a word: with SIGPIPE
// caught, the write fails with an error that is reported.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stops := make(chan os.Signal, 1)
	pipes := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(stops, s)
		}
	}
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		select {
		case s := <-stops:
			signal.Stop(stops)
			cancel(signalError{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(stops)
		signal.Stop(pipes)
		cancel(nil)
	}
}
