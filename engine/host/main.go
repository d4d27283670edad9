package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/background"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
)

// patience is the time that a worker has to end after a signal.
const patience = time.Minute

// Call is a request from an engine to another process of its program.
type Call = background.Call

// CallOf parses a program's arguments as a call; ok reports whether they are one.
func CallOf(args []string) (c Call, ok bool) { return background.CallOf(args) }

// Main is the body of a main function: os.Exit(host.Main("bot", run)). It calls run with a context that
// signals cancel, and returns the exit status. It prints an error of run with the prefix name, unless the
// error is a [Status]. If an engine of this program started the process as a worker, Main does that work
// instead.
func Main(name string, run func(context.Context, env.Env) error) int {
	if status, confined := bind.Dispatch(os.Args[1:], os.Environ(), os.Stderr); confined {
		return status
	}
	process, err := env.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return protocol.CodeFailed.ExitCode()
	}
	ctx, stop := proc.WithSignals(Context(context.Background()))
	defer stop()
	call, ok := background.CallOf(process.Args)
	if !ok {
		return statusOf(process, name, run(ctx, process))
	}
	return proc.UntilSignal(ctx, func() time.Duration { return patience }, func() int { return work(ctx, call, process) })
}

// work carries out a call and logs to stderr.
func work(ctx context.Context, c background.Call, process env.Env) int {
	process.Args = nil
	log := func(ev engine.Event) { fmt.Fprint(process.Stderr, line(ev)) }
	e, err := Open(ctx, process, Options{Home: c.Home, Store: c.Store, Events: log})
	if err == nil {
		if e.Turns = false; c.Debug {
			e.Log = Decisions(process.Stderr)
		}
		err = Run(ctx, e, c, process)
	}
	return statusOf(process, "worker", err)
}

// Status is an error with an exit status, for a program that has already printed the message.
type Status int

func (s Status) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// statusOf prints an error and returns its exit status.
func statusOf(process env.Env, name string, err error) int {
	var status Status
	if err == nil || errors.As(err, &status) {
		return int(status)
	}
	coded := fault.Of(err)
	fmt.Fprintln(process.Stderr, plaintext.Indent(name+": "+plaintext.Escape(coded.Message)))
	return coded.Code.ExitCode()
}

// Run carries out a call with an engine of the call's home.
func Run(ctx context.Context, e *engine.Engine, c background.Call, process env.Env) error {
	if c.Thread == "" {
		return Notices{e, process}.Send(ctx)
	}
	return e.Worker(ctx, c.Thread, c.Lock, process.Stdout)
}

// line returns the line for an event in a worker's log, or "" if it has none.
func line(ev engine.Event) string {
	text := ""
	switch {
	case ev.Kind == engine.Warning:
		text = "warning: " + ev.Text
	case ev.Kind == engine.StepStarted:
		text = fmt.Sprintf("%s: started, by %s", ev.Step.Role, ev.Step.Agent)
	case ev.Kind == engine.StepEnded && ev.Err != nil:
		text = fmt.Sprintf("%s: %v", ev.Step.Role, ev.Err)
	case ev.Kind == engine.StepEnded:
		text = fmt.Sprintf("%s: %s", ev.Step.Role, ev.Output.Status)
	default:
		return ""
	}
	if ev.Step.Path != "" {
		text = ev.Step.Path + ": " + text
	}
	return plaintext.Line(text) + "\n"
}
