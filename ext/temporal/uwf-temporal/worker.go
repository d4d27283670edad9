package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/ext/temporal/slot"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// grace is how long uwf has to stop an agent.
const grace = 30 * time.Second

// worker makes steps until a signal comes. The steps that are in flight then may end.
func (cmd *command) worker(c *ucli.Context, conf config) error {
	main, queue := conf.Queue, cmp.Or(c.String("queue"), conf.Queue)
	if n := c.Int("slots"); n > 0 {
		conf.Slots = min(n, maxSlots)
	}
	uwf, environ, err := cmd.uwf()
	if err != nil {
		return err
	}
	if err := cmd.fit(c.Context, conf); err != nil {
		return err
	}
	warnings := log.NewStructuredLogger(slog.New(slog.NewTextHandler(cmd.env.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	me := identity()
	temporal, err := cmd.connect(c.Context, conf, me, warnings)
	if err != nil {
		return err
	}
	defer temporal.Close()
	pool, err := slot.Open(c.Context, slot.Config{
		Uwf: uwf, Dir: conf.Dir, Home: conf.home, Slots: conf.Slots, Environ: environ, Grace: grace,
		Lease: protocol.Span(time.Duration(conf.Lease)), Queue: main, Queues: conf.Queues, Log: cmd.say,
	})
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()

	broken, some := make(chan error, 1), queue != main // it makes the steps of some roles only
	w := worker.New(temporal, queue, worker.Options{
		Identity:                           me,
		MaxConcurrentActivityExecutionSize: conf.Slots,
		WorkerStopTimeout:                  time.Duration(conf.Drain),
		MaxHeartbeatThrottleInterval:       time.Duration(conf.Silence) / 3,
		DisableWorkflowWorker:              some,
		OnFatalError:                       func(err error) { broken <- err },
	})
	register := flow.Register
	if some {
		register = flow.RegisterSteps
	}
	register(w, flow.Steps{Stepper: pool})
	if err := w.Start(); err != nil {
		return err
	}
	cmd.say(fmt.Sprintf("%d slots, task queue %s of %s at %s, remote %s", conf.Slots, queue, conf.Namespace, conf.Address, conf.Remote))
	watching, stopWatching := context.WithCancel(c.Context)
	var watchers sync.WaitGroup
	watchers.Go(func() {
		pool.Watch(watching, time.Duration(conf.Watch), func(r flow.Request) { wake(watching, temporal, r) })
	})
	defer watchers.Wait()
	defer stopWatching()
	select {
	case err := <-broken:
		w.Stop()
		return err
	case <-c.Context.Done():
		cmd.say("stops once the steps in flight have ended, in " + time.Duration(conf.Drain).String() + " at the latest")
		w.Stop()
	}
	if _, signalled := errors.AsType[*proc.SignalError](context.Cause(c.Context)); signalled {
		return nil // it was asked to stop, and has stopped
	}
	return context.Cause(c.Context)
}

// fit refuses a machine on which no step could be made: each that it took would fail.
func (cmd *command) fit(ctx context.Context, conf config) error {
	if err := cmd.ask(ctx, nil, "config", "show"); err != nil {
		return err
	}
	var remotes []struct{ Name string }
	if err := cmd.ask(ctx, &remotes, "remote", "list"); err != nil {
		return err
	}
	for _, r := range remotes {
		if r.Name == conf.Remote {
			return nil
		}
	}
	return cmdline.NotFound("this home has no remote "+plaintext.Word(conf.Remote), "uwf remote add --trust "+plaintext.Word(conf.Remote)+" <address>")
}

// say tells the worker's log.
func (cmd *command) say(text string) {
	_, _ = fmt.Fprintf(cmd.env.Stderr, "%s %s: %s\n", cmd.env.Now().UTC().Format(time.RFC3339), program, plaintext.Line(text))
}

// wake tells the workflow of a thread that it has moved. Of a child that waits for a person
// there is none: then the nearest one above it is told.
func wake(ctx context.Context, temporal client.Client, r flow.Request) {
	for _, thread := range append([]string{r.Thread}, r.Above...) {
		err := temporal.SignalWorkflow(ctx, flow.ID(r.Remote, thread), "", flow.Changed, nil)
		if !errors.As(err, new(*serviceerror.NotFound)) {
			return // it was told, or finds out later
		}
	}
}
