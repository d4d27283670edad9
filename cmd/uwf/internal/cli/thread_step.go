package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

func agentFlags() []ucli.Flag {
	return []ucli.Flag{
		agentFlag(),
		&ucli.BoolFlag{Name: "fresh", Usage: "do not adopt the finished result of an interrupted step"},
		timeoutFlag("stop a step's agent after this `TIME`"),
	}
}

// agentFlag names who plays the roles, see agentsByRole.
func agentFlag() ucli.Flag {
	return &ucli.StringSliceFlag{Name: "agent", Usage: "`[ROLE=]AGENT`: an alias of config.yaml or a command line, for one role or for all, instead of the configured one; can be repeated"}
}

// stepOptions are those of the flags, but for --agent: which roles there are, the
// workflow says.
func stepOptions(c *ucli.Context) (engine.StepOptions, error) {
	o := engine.StepOptions{Fresh: c.Bool("fresh")}
	var err error
	o.Timeout, err = timeoutOf(c)
	return o, err
}

func (a *app) threadStepCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "step", Aliases: []string{"exec"}, ArgsUsage: "<thread>",
		Usage: "run one or more steps of a thread",
		Flags: append(agentFlags(), countFlags()...),
	}, func(ctx context.Context, c *ucli.Context) error {
		w, err := workOf(c)
		if err != nil {
			return err
		}
		return a.work(ctx, c, w)
	})
}

// countFlags are those of commands that can go on after their first step.
func countFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "count", Aliases: []string{"c"}, Usage: "run up to `N` steps", Value: "1"},
		&ucli.BoolFlag{Name: "until-end", Usage: "continue to the end, or until a person is needed"},
		moveFlag(), backgroundFlag(),
	}
}

func backgroundFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "background", Usage: "return once the first agent has started; see thread wait, watch and stop"}
}

// workOf reads what is to be done with a thread.
func workOf(c *ucli.Context) (engine.Work, error) {
	o, err := stepOptions(c)
	if err != nil {
		return engine.Work{}, err
	}
	n, err := stepCount(c)
	return engine.Work{Steps: n, StepOptions: o}, err
}

// work makes the steps of a thread, here or in the background, and prints them.
func (a *app) work(ctx context.Context, c *ucli.Context, w engine.Work) error {
	var err error
	if w.Cwd, err = a.movedTo(c); err != nil {
		return err
	}
	progress := a.progress()
	if c.Bool("background") {
		progress = nil
	}
	id, e, err := a.threadAndEngine(ctx, c, progress)
	if err != nil {
		return err
	}
	err = agentsByRole(c.StringSlice("agent"), func() (protocol.Workflow, error) { return a.workflowOf(ctx, e, id) }, &w.StepOptions)
	if err != nil {
		return err
	}
	if err := e.Named(ctx, w.StepOptions); err != nil {
		return err
	}
	if c.Bool("background") {
		return a.inBackground(ctx, e, id, w)
	}
	results, err := e.Do(ctx, id, w)
	if len(results) > 0 {
		last := results[len(results)-1]
		// Where a single step leads is no more than its result.
		toTheEnd := w.Steps == engine.UntilEnd || w.Do == engine.DoResume
		cutShort := last.Status == protocol.StatusFailed && len(results) < w.Steps
		if toTheEnd || cutShort {
			a.endsAs(last)
		}
		if err == nil {
			a.sayNext(last)
		}
	}
	return errors.Join(a.printSteps(results), err)
}

// workflowOf is the workflow of a thread.
func (a *app) workflowOf(ctx context.Context, e *engine.Engine, id string) (protocol.Workflow, error) {
	head, err := e.Head(ctx, id)
	if err != nil {
		return protocol.Workflow{}, err
	}
	t, err := a.openThread(ctx, head)
	if err != nil {
		return protocol.Workflow{}, err
	}
	return t.Workflow(ctx)
}

// stepCount reads -c.
func stepCount(c *ucli.Context) (int, error) {
	if c.Bool("until-end") {
		if c.IsSet("count") {
			return 0, usageError("--count and --until-end exclude each other", "--until-end runs as many steps as it takes")
		}
		return engine.UntilEnd, nil
	}
	return numberFlag(c, "count", 1, 5)
}

// printSteps prints one result as an object and several as an array, as the
// original does.
func (a *app) printSteps(results []protocol.StepOutput) error {
	if len(results) == 0 {
		return nil
	}
	if len(results) == 1 {
		return a.print(results[0], func(w io.Writer) error { return stepText(w, results[0]) })
	}
	return a.print(results, func(w io.Writer) error {
		if a.told() {
			return stepText(w, results[len(results)-1])
		}
		return stepsMade(w, results)
	})
}

// told reports whether who reads the results has followed the steps on the same
// terminal.
func (a *app) told() bool {
	return !a.flags.quiet && a.onTerminal() && terminal.Is(a.env.Stderr)
}

func stepsMade(w io.Writer, results []protocol.StepOutput) error {
	for _, r := range results {
		if err := stepText(w, r); err != nil {
			return err
		}
	}
	return nil
}

// stepText is a result in one line: what ran, and what is next.
func stepText(w io.Writer, r protocol.StepOutput) error {
	ran := "no step"
	if r.Role != nil {
		ran = plaintext.Line(*r.Role)
	}
	if r.StepHash != nil {
		ran += " " + string(*r.StepHash)
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", ran, statusText(r))
	return err
}

// statusText says where a thread stands.
func statusText(r protocol.StepOutput) string {
	text := string(r.Status)
	switch {
	case r.Status == protocol.StatusSuspended && r.SuspendMessage != nil:
		text = "suspended: " + *r.SuspendMessage
	case r.Status == protocol.StatusIdle && r.CurrentRole != nil:
		text = "idle, next: " + *r.CurrentRole
	case r.Status == protocol.StatusRunning && r.CurrentRole != nil:
		text = "running: " + *r.CurrentRole
	case r.Error != nil:
		text += ": " + r.Error.Message
	}
	return plaintext.Line(text)
}

// sayNext tells what to type next.
func (a *app) sayNext(r protocol.StepOutput) {
	switch r.Status {
	case protocol.StatusSuspended:
		a.hint("uwf thread resume %s -p '<answer>'", r.Thread)
	case protocol.StatusRunning:
		a.hint("uwf thread wait %s", r.Thread)
	case protocol.StatusFailed:
		a.hint("uwf thread diagnose %s", r.Thread)
	case protocol.StatusCompleted:
		a.hint("uwf thread read %s", r.Thread)
	}
}

func (a *app) threadResumeCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "resume", ArgsUsage: "<thread>", Usage: "answer a suspended thread, or continue a completed one",
		Flags: append(append(agentFlags(), promptFlag(false, "the answer, as `TEXT`; - reads it from stdin, @FILE from a file")), countFlags()...),
	}, func(ctx context.Context, c *ucli.Context) error {
		w, err := workOf(c)
		if err != nil {
			return err
		}
		w.Do = engine.DoResume
		if w.Prompt, err = a.promptText(c.String("prompt")); err != nil {
			return err
		}
		return a.work(ctx, c, w)
	})
}

func (a *app) threadPokeCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "poke", ArgsUsage: "<thread>", Usage: "redo the last step with new instructions",
		Description: "The new step takes the place of the last one; what is next follows from it. The old\n" +
			"step stays in the store until it is collected: uwf thread fork <step> goes on from it.",
		Flags: append(append(agentFlags(), promptFlag(true, "what to tell it, as `TEXT`; - reads it from stdin, @FILE from a file")), countFlags()...),
	}, func(ctx context.Context, c *ucli.Context) error {
		w, err := workOf(c)
		if err != nil {
			return err
		}
		w.Do = engine.DoPoke
		if w.Prompt, err = a.promptText(c.String("prompt")); err != nil {
			return err
		}
		if strings.TrimSpace(w.Prompt) == "" {
			return usageError("the prompt is empty", "-p 'new instructions'")
		}
		return a.work(ctx, c, w)
	})
}

func (a *app) threadWaitCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "wait", Aliases: []string{"join"}, ArgsUsage: "<thread>",
		Usage:       "wait until nothing works on a thread any more",
		Description: "Exit status 6 if it then waits for a person; if the last try failed, that of the failure.",
		Flags:       []ucli.Flag{timeoutFlag("give up after this `TIME`")},
	}, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.threadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		ctx, cancel, err := waitContext(ctx, c)
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
		a.endsAs(out)
		a.sayNext(out)
		return a.printSteps([]protocol.StepOutput{out})
	})
}

var errWaited = errors.New("waited long enough")

// waitContext bounds a wait.
func waitContext(ctx context.Context, c *ucli.Context) (context.Context, context.CancelFunc, error) {
	d, err := timeoutOf(c)
	if err != nil {
		return nil, nil, err
	}
	if d == 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d, errWaited)
	return ctx, cancel, nil
}
