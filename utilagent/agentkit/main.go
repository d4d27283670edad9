package agentkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Run plays the agent in this process and exits: it is the whole of main.
func Run(o Options) {
	p, err := OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, protocol.AgentName(o.Name)+":", err)
		os.Exit(1)
	}
	os.Exit(Main(context.Background(), p, o))
}

// lockFD is the descriptor on which an agent inherits the lock by which the
// engine tells that it is alive. A child that outlives the agent must not have
// it, or the thread would look busy for as long.
const lockFD = 3

// Main runs an agent and returns its exit status: 0; 2 for a wrong command line;
// 129, 130 or 143 when a signal has stopped it; else 1. With a Process of [OS] it
// handles the process's signals: the first interrupt or terminate cancels the
// context of Options.Run, the second ends the process. With another one it touches
// nothing of the process, so a test can run it; package agentkittest does.
func Main(ctx context.Context, p Process, o Options) int {
	e, err := p.env()
	name := protocol.AgentName(o.Name)
	if err != nil {
		fmt.Fprintf(e.Stderr, "%s: %v\n", name, err)
		return 1
	}
	if p.real {
		var stop func()
		ctx, stop = untilSignal(ctx)
		defer stop()
		if dir := e.Get(protocol.EnvRunDir); dir != "" {
			durable.KeepFromChildren(lockFD, runfiles.Dir(dir).File(runfiles.LockFile))
		}
	}
	if o.Dispatch != nil {
		if status, dispatched := o.Dispatch(e.Args, e.Environ, e.Stderr); dispatched {
			return status
		}
	}
	inv, err := parse(e.Args, o)
	inv.process = p.real
	switch {
	case err != nil:
		complain(e.Stderr, name, err)
		refuse(e, err)
		return exitCode(ctx, err)
	case inv.help:
		return write(e, name, help(o))
	case inv.version:
		return write(e, name, name+" "+version(o)+"\n")
	}
	if inv.check {
		err = check(ctx, e, o)
	} else {
		err = work(ctx, e, o, inv)
	}
	if err != nil {
		complain(e.Stderr, name, err)
		return exitCode(ctx, err)
	}
	return 0
}

// complain tells who has typed the command line. What a model or a program has said
// in an error cannot be taken for a hint.
func complain(w io.Writer, name string, err error) {
	text := plaintext.Indent(plaintext.Escape(err.Error()))
	if errors.As(err, new(*usageError)) {
		text += "\n" + synopsis(name)
	}
	fmt.Fprintf(w, "%s: %s\n", name, text)
	for _, h := range hintsOf(err) {
		fmt.Fprintf(w, "hint: %s\n", plaintext.Line(h))
	}
}

// hintsOf are what an error of ours says to do. The text of an error is a stranger's.
func hintsOf(err error) []string {
	var of interface{ Hints() []string }
	var coded *protocol.Error
	switch {
	case errors.As(err, &of):
		return of.Hints()
	case errors.As(err, &coded):
		return coded.Hints
	}
	return nil
}

// refuse tells the engine, if that has started the agent, why nothing was done.
func refuse(e env.Env, err error) {
	var usage *usageError
	if e.Get(protocol.EnvRunDir) == "" || !errors.As(err, &usage) {
		return
	}
	// If this cannot be written, the engine shows what is on stderr.
	_ = (&printer{w: e.Stdout}).result(protocol.Result{Error: usage.Error(), Hints: usage.hints})
}

// work makes the step and prints the result line, also for a failure: the engine
// reads there what could not be used and what it cost.
func work(ctx context.Context, e env.Env, o Options, inv invocation) error {
	out := &printer{w: e.Stdout, yaml: inv.yaml}
	result, err := play(ctx, e, o, inv, out)
	if err == nil {
		return out.result(result)
	}
	result.Error, result.Hints = err.Error(), hintsOf(err)
	result = classed(result, err)
	return errors.Join(err, out.result(result))
}

func write(e env.Env, name, text string) int {
	if _, err := io.WriteString(e.Stdout, text); err != nil {
		fmt.Fprintf(e.Stderr, "%s: stdout: %v\n", name, err)
		return 1
	}
	return 0
}

// exitCode is the exit status for an error.
func exitCode(ctx context.Context, err error) int {
	if sig, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
		return sig.exitCode()
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return protocol.CodeUsage.ExitCode()
	}
	return protocol.CodeFailed.ExitCode()
}
