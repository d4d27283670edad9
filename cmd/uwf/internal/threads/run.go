package threads

import (
	"context"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// Run is uwf run.
func (a Commands) Run() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "run", ArgsUsage: "<workflow>",
		Usage: "start a thread and run it to the end",
		Flags: append(slices.Concat(agentFlags(), varFlags(), limitFlags(), treeFlags()), titleFlag(), promptFlag(true, "the task, as `TEXT`; - reads it from stdin, @FILE from a file"), cwdFlag(), workflows.YesFlag(), backgroundFlag(),
			remoteFlag("take the thread to this `REMOTE`, and each step as it is made; children are left to whoever steps them there"), leaseFlag(),
			&ucli.BoolFlag{Name: "wait", Usage: "wait while the thread is rate-limited, and continue when the provider's limit is reset"},
			&ucli.BoolFlag{Name: "dry-run", Usage: "start nothing: show the plan, and which agent would play each role"}),
	}, a.runWorkflow)
}

func (a Commands) runWorkflow(ctx context.Context, c *ucli.Context) error {
	o, err := a.stepOptions(c)
	if err != nil {
		return err
	}
	l, err := limitsOf(c)
	if err != nil {
		return err
	}
	if c.IsSet("lease") && !c.IsSet("remote") {
		return cmdline.UsageError("--lease goes with --remote")
	}
	if c.Bool("dry-run") && c.IsSet("remote") {
		return cmdline.UsageError("--dry-run and --remote exclude each other: it starts nothing anywhere")
	}
	if c.Bool("dry-run") {
		return a.dryRun(ctx, c, o, l)
	}
	var at shared
	if c.IsSet("remote") { // one that cannot be reached is told before there is a thread
		if at, err = a.linked(ctx, c, a.Progress()); err != nil {
			return err
		}
		defer at.close()
	}
	started, err := a.start(ctx, c, l, func(e *engine.Engine, s protocol.Start) error {
		workflow := func() (protocol.Workflow, error) { return cas.Read[protocol.Workflow](ctx, e.Store, s.Workflow) }
		if err := agentsByRole(c.StringSlice("agent"), workflow, &o); err != nil {
			return err
		}
		if err := e.CheckFirst(ctx, s, o); err != nil {
			return err
		}
		if err := checkBudget(ctx, e, s, l, o); err != nil {
			return err
		}
		return e.Casting().Named(ctx, o.Wish())
	})
	if err != nil {
		return err
	}
	a.Say("thread %s", started.Thread)
	o.Wake = true // a person has asked: what an account was refused before counts for nothing
	work := engine.Work{Steps: engine.UntilEnd, StepOptions: o}
	if c.Bool("background") {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		return withNext(a.inBackground(ctx, e, started.Thread, work), started.Thread)
	}
	e, err := a.Engine(ctx, a.Progress())
	if err != nil {
		return err
	}
	if at.link != nil {
		if at.id = started.Thread; err == nil {
			_, err = at.link.Push(ctx, []string{at.id}, remotes.PushOptions{})
		}
		if err != nil {
			return withNext(err, started.Thread)
		}
	}
	run := func() (results []protocol.StepOutput, err error) {
		err = at.with(ctx, e, work, func(e *engine.Engine, w engine.Work) error {
			results, err = a.doAsking(ctx, e, started.Thread, w)
			return err
		})
		return results, err
	}
	results, runErr := run()
	for c.Bool("wait") && runErr == nil && len(results) > 0 && results[len(results)-1].Status == protocol.StatusRateLimited {
		a.Say("thread %s: %s", started.Thread, app.StandingText(results[len(results)-1]))
		if runErr = e.AwaitParked(ctx, started.Thread); runErr == nil {
			results, runErr = run()
		}
	}
	return a.Conclude(ctx, e, started.Thread, results, withNext(runErr, started.Thread), true)
}

// withNext adds how to go on to the error that ended a run.
func withNext(err error, thread string) error {
	if err == nil {
		return nil
	}
	coded := app.Classify(err)
	if len(coded.Hints) > 0 {
		return err
	}
	return &protocol.Error{Code: coded.Code, Message: coded.Message, Err: err, Hints: []string{"uwf thread resume " + thread}}
}
