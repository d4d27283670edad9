package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/ext/temporal/slot"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// grace is the time that uwf has to stop an agent.
const grace = 30 * time.Second

// worker runs steps until it receives a signal. It lets the steps in flight finish.
func (cmd *command) worker(c *ucli.Context, conf config) error {
	main, queue := conf.Queue, cmp.Or(c.String("queue"), conf.Queue)
	if n := c.Int("max-concurrent-steps"); n < 0 || n > maxSlots {
		return cmdline.UsageError(fmt.Sprintf("--max-concurrent-steps must be 1 to %d", maxSlots), "--max-concurrent-steps 8")
	} else if n > 0 {
		conf.Slots = n
	}
	environ := cmd.process().Environ
	if listen := c.String("listen"); listen != "" {
		conf.Listen = listen
	}
	if err := cmd.fit(c.Context, conf); err != nil {
		return err
	}
	look, err := cmd.looker(c.Context, conf, environ)
	if err != nil {
		return err
	}
	defer look.close()
	warnings := log.NewStructuredLogger(slog.New(slog.NewTextHandler(cmd.env.Stderr,
		&slog.HandlerOptions{Level: slog.LevelError})))
	me := identity()
	temporal, err := cmd.connect(c.Context, conf, me, warnings)
	if err != nil {
		return err
	}
	defer temporal.Close()
	pool, err := slot.Open(c.Context, slot.Config{
		Exe: cmd.env.Exe, Dir: conf.Dir, Home: conf.home, Slots: conf.Slots, Environ: environ, Grace: grace,
		Lease: time.Duration(conf.Lease), Queue: main, Queues: conf.Queues, Now: cmd.env.Now, Log: cmd.logText,
		Made: cmd.log,
	})
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()

	tuner, err := tuned(conf.Slots, pool.Health())
	if err != nil {
		return err
	}
	endProbes, err := cmd.probes(c.Context, conf, temporal, pool.Health())
	if err != nil {
		return err
	}
	defer endProbes()
	broken, some := make(chan error, 1), queue != main // it makes the steps of some roles only
	w := worker.New(temporal, queue, worker.Options{
		Identity:                     me,
		Tuner:                        tuner,
		WorkerStopTimeout:            time.Duration(conf.Drain),
		MaxHeartbeatThrottleInterval: time.Duration(conf.Silence) / 3,
		DisableWorkflowWorker:        some,
		// Time that a workflow waits for its previous worker, which may be dead.
		StickyScheduleToStartTimeout: time.Second,
		OnFatalError:                 func(err error) { broken <- err },
	})
	register := flow.Register
	if some {
		register = flow.RegisterSteps
	}
	register(w, flow.Steps{Stepper: pool})
	if err := w.Start(); err != nil {
		return err
	}
	cmd.logText(fmt.Sprintf("%d slots, task queue %s of %s at %s, remote %s", conf.Slots, queue, conf.Namespace,
		conf.Address, conf.Remote))
	watching, stopWatching := context.WithCancel(c.Context)
	var watchers sync.WaitGroup
	watchers.Go(func() {
		pool.Watch(watching, time.Duration(conf.Watch), look.look, func(r flow.Request) bool {
			return wake(watching,
				temporal, r)
		})
	})
	watchers.Go(func() {
		if err := cmd.adopt(watching, temporal, conf); err != nil && watching.Err() == nil {
			cmd.logText("questions of stopped workers are found later: " + err.Error())
		}
	})
	defer watchers.Wait()
	defer stopWatching()
	select {
	case err := <-broken:
		w.Stop()
		return err
	case err := <-pool.Health().Broken():
		w.Stop()
		handOver(temporal, pool)
		return err
	case <-c.Context.Done():
		cmd.logText("stopping when the running steps end, at most " + time.Duration(conf.Drain).String())
		w.Stop()
		handOver(temporal, pool)
	}
	if _, signalled := errors.AsType[*proc.SignalError](context.Cause(c.Context)); signalled {
		return nil // it was asked to stop
	}
	return context.Cause(c.Context)
}

// handOver wakes the threads that this worker has watched, so that another worker watches them.
func handOver(temporal client.Client, pool *slot.Pool) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, r := range pool.Waiting() {
		wake(ctx, temporal, r)
	}
}

// fit returns an error if no step could be made on this machine: the config is unreadable, or an agent cannot
// be started or reports a problem.
func (cmd *command) fit(ctx context.Context, conf config) error {
	// Use a separate directory, as for steps: programs in a workspace must not play roles.
	dir, err := os.MkdirTemp("", program+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(dir) }()
	process := cmd.process()
	process.Dir = dir
	o, err := engine.Open(ctx, process, engine.Options{Home: conf.home})
	if err != nil {
		return err
	}
	settings, err := o.Reader.Config(ctx)
	if err != nil {
		return err
	}
	e := &protocol.Error{Code: protocol.CodeInvalid, Message: "this machine cannot make steps"}
	problem := func(alias, what, do string) {
		if e.Message += "\nagent " + alias + ": " + what; do != "" {
			e.Hints = append(e.Hints, do)
		}
	}
	for _, alias := range slices.Sorted(maps.Keys(settings.Agents)) {
		agent := settings.Agents[alias]
		found := discover.Ask(ctx, agent.Command, agent.Args, o.Reader.Env)
		if found.Err != nil {
			problem(alias, agent.Command+" "+found.Err.Error(), "")
		} else if found.Check != nil {
			for _, p := range found.Check.Problems {
				problem(alias, p.What, p.Do)
			}
		}
	}
	if _, alias := settings.Agents[settings.DefaultAgent]; !alias && settings.DefaultAgent != "" {
		if err := o.Casting().Named(ctx, engine.StepOptions{Agent: settings.DefaultAgent}.Choices()); err != nil {
			problem(settings.DefaultAgent, err.Error(), "")
		}
	}
	if strings.Contains(e.Message, "\n") {
		return e
	}
	_, err = cmd.remote(conf)
	return err
}

// remote returns the remote in the config, as configured in the home.
func (cmd *command) remote(conf config) (remotes.Known, error) {
	all, err := remotes.Book{Dirs: home.Dirs{Home: conf.home}, Dir: conf.home}.All()
	if err != nil {
		return remotes.Known{}, err
	}
	if i := slices.IndexFunc(all, func(r remotes.Known) bool { return r.Name == conf.Remote }); i >= 0 {
		return all[i], nil
	}
	return remotes.Known{}, cmdline.NotFound("no remote named "+plaintext.Word(conf.Remote),
		"uwf remote add --trust "+plaintext.Word(conf.Remote)+" <address>")
}

// log prints a step as a line of JSON.
func (cmd *command) log(m slot.Made) {
	cmd.mu.Lock()
	defer cmd.mu.Unlock()
	_ = json.NewEncoder(cmd.env.Stdout).Encode(m) // there is no other place to report an error
}

// logText writes to the worker's log.
func (cmd *command) logText(text string) {
	_, _ = fmt.Fprintf(cmd.env.Stderr, "%s %s: %s\n", cmd.env.Now().UTC().Format(time.RFC3339), program,
		plaintext.Line(text))
}
