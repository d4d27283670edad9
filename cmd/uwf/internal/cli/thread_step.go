package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/engine"
	"github.com/united-workforce/uwf/protocol"
)

func agentFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "agent", Usage: "an alias of config.yaml, or a command line `CMD`, instead of the configured agent"},
		&ucli.BoolFlag{Name: "fresh", Usage: "do not adopt the finished result of an interrupted step"},
		&ucli.DurationFlag{Name: "timeout", Usage: "stop a step's agent after this time, such as 30m"},
	}
}

func stepOptions(c *ucli.Context) (engine.StepOptions, error) {
	o := engine.StepOptions{Agent: c.String("agent"), Fresh: c.Bool("fresh"), Timeout: c.Duration("timeout")}
	if c.IsSet("agent") && o.Agent == "" {
		return o, usageError("--agent is empty", "--agent <alias or command>")
	}
	if o.Timeout < 0 {
		return o, usageError(fmt.Sprintf("--timeout must not be negative, got %s", o.Timeout))
	}
	return o, nil
}

func (a *app) threadStepCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "step", Aliases: []string{"exec"}, ArgsUsage: "<thread>",
		Usage: "make one or more steps of a thread",
		Flags: append(agentFlags(),
			&ucli.StringFlag{Name: "count", Aliases: []string{"c"}, Usage: "make up to `N` steps", Value: "1"},
			&ucli.BoolFlag{Name: "until-end", Usage: "go on to the end, or until a person is needed"},
		),
	}, a.threadStep)
}

func (a *app) threadStep(ctx context.Context, c *ucli.Context) error {
	o, err := stepOptions(c)
	if err != nil {
		return err
	}
	n, err := stepCount(c)
	if err != nil {
		return err
	}
	id, e, err := a.threadAndEngine(ctx, c, a.progress())
	if err != nil {
		return err
	}
	results, err := a.steps(ctx, e, id, n, o)
	if len(results) > 0 {
		last := results[len(results)-1]
		if n == untilEnd {
			a.suspendedIs(last)
		}
		if err == nil {
			a.sayNext(last)
		}
	}
	return errors.Join(a.printSteps(results), err)
}

// untilEnd is the count of --until-end.
const untilEnd = 0

// stepCount reads -c. It is a string flag because the library's number flag
// accepts 010 and 0x10.
func stepCount(c *ucli.Context) (int, error) {
	if c.Bool("until-end") {
		if c.IsSet("count") {
			return 0, usageError("--count and --until-end exclude each other")
		}
		return untilEnd, nil
	}
	n, err := positive(c.String("count"))
	if err != nil {
		return 0, usageError(fmt.Sprintf("--count must be a positive integer, got: %s", c.String("count")))
	}
	return n, nil
}

// steps makes up to n steps. It stops where a person is needed, at the end and
// at the first failure; what was done until then is returned in any case.
func (a *app) steps(ctx context.Context, e *engine.Engine, id string, n int, o engine.StepOptions) ([]protocol.StepOutput, error) {
	var results []protocol.StepOutput
	for i := 0; n == untilEnd || i < n; i++ {
		out, err := e.Step(ctx, id, o)
		if err == nil || out.StepHash != nil {
			results = append(results, out) // a finished step is printed whatever came after it
		}
		if err != nil {
			return results, err
		}
		if out.Done || out.Status != protocol.StatusIdle {
			return results, nil
		}
	}
	return results, nil
}

// printSteps prints one result as an object and several as an array, as the
// original does.
func (a *app) printSteps(results []protocol.StepOutput) error {
	if len(results) == 0 {
		return nil
	}
	text := func(w io.Writer) error {
		for _, r := range results {
			if err := stepText(w, r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(results) == 1 {
		return a.print(results[0], text)
	}
	return a.print(results, text)
}

// stepText is a result in one line: what ran, and what is next.
func stepText(w io.Writer, r protocol.StepOutput) error {
	ran := "no step"
	if r.Role != nil {
		ran = *r.Role
	}
	if r.StepHash != nil {
		ran += " " + string(*r.StepHash)
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", ran, statusText(r))
	return err
}

// statusText says where a thread stands.
func statusText(r protocol.StepOutput) string {
	switch {
	case r.Status == protocol.StatusSuspended && r.SuspendMessage != nil:
		return "suspended: " + *r.SuspendMessage
	case r.Status == protocol.StatusIdle && r.CurrentRole != nil:
		return "idle, next: " + *r.CurrentRole
	case r.Status == protocol.StatusRunning && r.CurrentRole != nil:
		return "running: " + *r.CurrentRole
	case r.Error != nil:
		return string(r.Status) + ": " + r.Error.Message
	}
	return string(r.Status)
}

// sayNext tells what to type next.
func (a *app) sayNext(r protocol.StepOutput) {
	switch r.Status {
	case protocol.StatusSuspended:
		a.hint("uwf thread resume %s -p '<answer>'", r.Thread)
	case protocol.StatusCompleted:
		a.hint("uwf thread read %s", r.Thread)
	}
}

func (a *app) threadResumeCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "resume", ArgsUsage: "<thread>", Usage: "answer a suspended thread, or go on with a completed one",
		Flags: append(agentFlags(), promptFlag(false, "the answer, as `TEXT`; - reads it from stdin")),
	}, func(ctx context.Context, c *ucli.Context) error {
		o, err := stepOptions(c)
		if err != nil {
			return err
		}
		supplement, err := a.promptText(c.String("prompt"))
		if err != nil {
			return err
		}
		id, e, err := a.threadAndEngine(ctx, c, a.progress())
		if err != nil {
			return err
		}
		out, err := e.Resume(ctx, id, supplement, o)
		if err != nil {
			if out.StepHash == nil {
				return err
			}
			return errors.Join(a.printSteps([]protocol.StepOutput{out}), err)
		}
		a.suspendedIs(out)
		a.sayNext(out)
		return a.printSteps([]protocol.StepOutput{out})
	})
}

func (a *app) threadWaitCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "wait", Aliases: []string{"join"}, ArgsUsage: "<thread>",
		Usage: "wait until no step of a thread is running",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "timeout", Usage: "give up after this `TIME`: seconds, or such as 30m"}},
	}, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.threadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		ctx, cancel, err := waitContext(ctx, c.String("timeout"))
		if err != nil {
			return err
		}
		defer cancel()
		out, err := e.Wait(ctx, id)
		if errors.Is(context.Cause(ctx), errWaited) {
			return &protocol.Error{
				Code: protocol.CodeTimeout, Message: fmt.Sprintf("thread %s is still running after %s", id, c.String("timeout")),
				Hints: []string{"uwf thread stop " + id},
			}
		}
		if err != nil {
			return err
		}
		a.suspendedIs(out)
		a.sayNext(out)
		return a.printSteps([]protocol.StepOutput{out})
	})
}

var errWaited = errors.New("waited long enough")

// waitContext bounds a wait. A bare number is seconds, as in the original.
func waitContext(ctx context.Context, timeout string) (context.Context, context.CancelFunc, error) {
	if timeout == "" {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	d, err := time.ParseDuration(timeout)
	if n, nerr := positive(timeout); nerr == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d <= 0 {
		return nil, nil, usageError(fmt.Sprintf("--timeout must be a time such as 90 or 30m, got %q", timeout))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d, errWaited)
	return ctx, cancel, nil
}
