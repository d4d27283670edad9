package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
)

// runOutput answers run: where the thread stands, and each step of this run.
type runOutput struct {
	protocol.StepOutput
	Steps []protocol.StepOutput `json:"steps"`
}

func (a *app) runCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "run", ArgsUsage: "<workflow>",
		Usage: "start a thread and run it to the end",
		Flags: append(agentFlags(), promptFlag(true, "the task, as `TEXT`; - reads it from stdin, @FILE from a file"), cwdFlag(), backgroundFlag(),
			&ucli.BoolFlag{Name: "dry-run", Usage: "start nothing: show the plan, and which agent would play each role"}),
	}, a.runWorkflow)
}

func (a *app) runWorkflow(ctx context.Context, c *ucli.Context) error {
	o, err := stepOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return a.dryRun(ctx, c, o)
	}
	started, err := a.start(ctx, c, func(e *engine.Engine, s protocol.Start) error {
		workflow := func() (protocol.Workflow, error) { return cas.Read[protocol.Workflow](ctx, e.Store, s.Workflow) }
		if err := agentsByRole(c.StringSlice("agent"), workflow, &o); err != nil {
			return err
		}
		if err := e.CheckFirst(ctx, s, o); err != nil {
			return err
		}
		return e.Named(ctx, o)
	})
	if err != nil {
		return err
	}
	a.say("thread %s", started.Thread)
	work := engine.Work{Steps: engine.UntilEnd, StepOptions: o}
	if c.Bool("background") {
		e, err := a.engine(ctx, nil)
		if err != nil {
			return err
		}
		return withNext(a.inBackground(ctx, e, started.Thread, work), started.Thread)
	}
	e, err := a.engine(ctx, a.progress())
	if err != nil {
		return err
	}
	results, runErr := e.Do(ctx, started.Thread, work)
	out, err := a.runResult(ctx, e, started.Thread, results)
	if err != nil {
		return errors.Join(runErr, err)
	}
	a.endsAs(out.StepOutput)
	if runErr == nil {
		a.sayNext(out.StepOutput)
	}
	return errors.Join(a.print(out, func(w io.Writer) error { return a.runText(w, out) }), withNext(runErr, started.Thread))
}

// runResult says where the thread stands after a run, whether it failed or not.
func (a *app) runResult(ctx context.Context, e *engine.Engine, id string, results []protocol.StepOutput) (runOutput, error) {
	out := runOutput{Steps: results}
	if out.Steps == nil {
		out.Steps = []protocol.StepOutput{}
	}
	if n := len(results); n > 0 && results[n-1].Status != protocol.StatusIdle {
		out.StepOutput = results[n-1]
		return out, nil
	}
	// The run was cut short: the last result is not where the thread stands.
	show, err := e.Show(context.WithoutCancel(ctx), id)
	out.StepOutput = show
	return out, err
}

// runText is a line for each step, unless the same terminal has told of them.
func (a *app) runText(w io.Writer, r runOutput) error {
	if !a.told() {
		if err := stepsMade(w, r.Steps); err != nil {
			return err
		}
	}
	status := statusText(r.StepOutput)
	if r.Error != nil {
		status = string(r.Status) // stderr says why
	}
	_, err := fmt.Fprintf(w, "thread %s: %s\n", r.Thread, status)
	return err
}

// withNext adds how to go on to the error that ended a run.
func withNext(err error, thread string) error {
	if err == nil {
		return nil
	}
	coded := classify(err)
	if len(coded.Hints) > 0 {
		return err
	}
	return &protocol.Error{Code: coded.Code, Message: coded.Message, Err: err, Hints: []string{"uwf thread step " + thread}}
}
