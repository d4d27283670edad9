// Package cli is the command line of uwf: it reads arguments, calls the engine
// or the store, and prints what they answer. stdout carries results only; talk
// goes to stderr. Hints, the next command to type, are attached here, and by the
// engine where it knows the thread; nowhere below.
//
// The commands stand in packages beside it, one per noun: threads, workflows, steps,
// bundles, settings. root.go lists them; package app is what they share.
package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
)

// Main runs one command line and returns its exit status.
func Main(ctx context.Context, e env.Env) int {
	ctx, stop := proc.WithSignals(ctx)
	defer stop()
	a := commands{&app.App{Env: e}}
	ctx = durable.WithWaiting(ctx, a.waiting)
	return proc.UntilSignal(ctx, a.patience, func() int { return a.main(ctx) })
}

// patience is how long a command may go on after a signal. An agent is asked to
// stop first, and what it finishes is kept.
func (a commands) patience() time.Duration {
	if a.Steps.Load() {
		return time.Minute
	}
	return time.Second
}

// main runs the command line and returns its exit status.
func (a commands) main(ctx context.Context) int {
	e := a.Env
	if err := a.run(ctx); err != nil {
		coded := afterSignal(ctx, err)
		a.MissingStore(coded)
		a.Hide(coded)
		cmdline.Report(e.Stderr, "uwf", coded, a.Format(nil) == render.JSON && !a.TextErrors)
		return coded.Code.ExitCode()
	}
	if a.CAS.Status != "" {
		return a.CAS.Status.ExitCode()
	}
	if a.Exit != 0 {
		return a.Exit
	}
	return a.Status.ExitCode()
}

// afterSignal is the error of a command, given its context. One that a signal has
// ended has the status of the signal, whatever went wrong because of it.
func afterSignal(ctx context.Context, err error) *protocol.Error {
	var signal *engine.SignalError
	if !errors.As(context.Cause(ctx), &signal) {
		return app.Classify(err)
	}
	if errors.Is(err, context.Canceled) {
		err = signal // whatever was in the middle of something
	}
	coded := *app.Classify(err)
	coded.Code = signal.Code()
	return &coded
}

// waiting tells a person what a command waits for, once for each lock.
func (a commands) waiting(lock string) {
	holders := proc.Holders(lock)
	if who, err := durable.ReadHolder(lock); err == nil && len(holders) == 0 {
		holders = []int{who.Pid}
	}
	by := "another process"
	if len(holders) > 0 {
		by = "pid " + strings.Trim(strings.ReplaceAll(fmt.Sprint(holders), " ", ", "), "[]")
	}
	a.SayOnce(lock, fmt.Sprintf("uwf: waiting for %s, which is locked by %s", lock, by))
}

func (a commands) run(ctx context.Context) error {
	root := a.root()
	args, err := cmdline.Reorder(root, a.Env.Args)
	if err != nil {
		a.Flags.Format = cmdline.FormatIn(a.Env.Args)
		return err
	}
	return root.RunContext(ctx, append([]string{"uwf"}, args...))
}

// readGlobals runs before every command.
func (a commands) readGlobals(c *ucli.Context) error {
	a.Flags = app.Globals{
		Format: c.String("format"), Home: c.String("home"),
		Store: c.String("store"), Quiet: c.Bool("quiet"), Debug: c.Bool("debug"),
	}
	if c.Bool("json") {
		if a.Flags.Format != "" && a.Flags.Format != string(render.JSON) {
			return cmdline.UsageError("--json and --format "+a.Flags.Format+" exclude each other", "--json")
		}
		a.Flags.Format = string(render.JSON)
	}
	if a.Flags.Format == "" {
		return nil
	}
	if _, err := render.ParseFormat(a.Flags.Format); err != nil {
		if near := suggest.Nearest(a.Flags.Format, render.Formats(), 1); len(near) > 0 {
			return cmdline.UsageError(err.Error(), "did you mean --format "+near[0]+"?")
		}
		return cmdline.UsageError(err.Error())
	}
	return nil
}

// commands are those of this package, and the root of all.
type commands struct{ *app.App }
