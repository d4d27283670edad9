package threads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

func agentFlags() []ucli.Flag {
	return []ucli.Flag{
		agentFlag(), scenarioFlag(),
		&ucli.BoolFlag{Name: "discard-result", Usage: "discard the finished result of an interrupted step, and run the step again"},
		term.TimeoutFlag("stop a step's agent after this `TIME`"),
		&ucli.StringFlag{Name: "parallel", Usage: "at most `N` threads at work at once (default: two for each processor)"},
	}
}

// agentFlag names who plays the roles, see agentsByRole.
func agentFlag() ucli.Flag {
	return &ucli.StringSliceFlag{Name: "agent", Usage: "`[ROLE=]AGENT`: an alias of config.yaml, the name of an " +
		"installed agent (codex for uwf-codex) or a command line, for one role or for all, instead of the configured " +
		"one, from now on; can be repeated"}
}

// scenarioFlag names a script that plays every role.
func scenarioFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "scenario", Usage: "a script for uwf-mock, `FILE`, plays all roles, also those of commands and people"}
}

// stepOptions are those of the flags, but for --agent: which roles there are, the
// workflow says.
func (a Commands) stepOptions(c *ucli.Context) (engine.StepOptions, error) {
	o := engine.StepOptions{Fresh: c.Bool("discard-result"), KeepFiles: c.Bool("keep-files")}
	var err error
	if c.IsSet("scenario") {
		o.Scenario = a.Env.Path(c.String("scenario"))
		if _, err := os.Stat(o.Scenario); err != nil {
			return o, cmdline.NotFound("there is no scenario " + c.String("scenario"))
		}
	}
	if o.Timeout, err = term.TimeoutOf(c); err != nil || !c.IsSet("parallel") {
		return o, err
	}
	o.Parallel, err = term.NumberFlag(c, "parallel", 1, 4)
	return o, err
}

func (a Commands) threadStepCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "step", Aliases: []string{"exec"}, ArgsUsage: "<thread>",
		Usage: "run one or more steps of a thread",
		Flags: append(append(append(agentFlags(), keepFilesFlag()), countFlags()...), remoteFlags()...),
	}, func(ctx context.Context, c *ucli.Context) error {
		w, err := a.workOf(c)
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
func (a Commands) workOf(c *ucli.Context) (engine.Work, error) {
	o, err := a.stepOptions(c)
	if err != nil {
		return engine.Work{}, err
	}
	n, err := stepCount(c)
	if err != nil {
		return engine.Work{}, err
	}
	expect, err := expected(c)
	return engine.Work{Steps: n, Expect: expect, StepOptions: o}, err
}

// work makes the steps of a thread, here or in the background, and prints them.
func (a Commands) work(ctx context.Context, c *ucli.Context, w engine.Work) error {
	var err error
	if w.Cwd, err = a.movedTo(c); err != nil {
		return err
	}
	progress := a.Progress()
	if c.Bool("background") {
		progress = nil
	}
	at, err := a.atRemote(ctx, c, progress, false)
	defer at.close()
	if err != nil {
		return err
	}
	id := at.id
	if id == "" {
		id, err = a.Thread(ctx, c.Args().First())
	}
	if err != nil && w.Do == engine.DoPoke && strings.Contains(c.Args().First(), app.Newest) {
		id, w.At, err = a.Place(ctx, c.Args().First())
	}
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, progress)
	if err != nil {
		return err
	}
	err = agentsByRole(c.StringSlice("agent"), func() (protocol.Workflow, error) { return a.workflowOf(ctx, e, id) }, &w.StepOptions)
	if err != nil {
		return err
	}
	if err := e.Casting().Named(ctx, w.Wish()); err != nil {
		return err
	}
	if terminal.Is(a.Env.Stdin) && w.Cwd == "" { // what else is wrong is said below
		if err := workflows.New(a.App).Trusting(ctx, e, func() error { return e.Settled(ctx, id) }); errors.As(err, new(*engine.UntrustedError)) {
			return err
		}
	}
	if c.Bool("background") {
		return a.inBackground(ctx, e, id, w)
	}
	var results []protocol.StepOutput
	err = at.with(ctx, e, w, func(e *engine.Engine, w engine.Work) error {
		var err error
		results, err = a.doAsking(ctx, e, id, w)
		return err
	})
	if len(results) == 0 {
		return err
	}
	if left := results[len(results)-1]; left.Status == protocol.StatusWaitingForChildren && w.Steps != engine.UntilEnd && err == nil {
		a.Say("thread %s: its children are still to be run, and -c counts only steps of the thread itself", id)
	}
	// Where a single step leads is no more than its result.
	toTheEnd := w.Steps == engine.UntilEnd || w.Do == engine.DoResume
	cutShort := results[len(results)-1].Status == protocol.StatusError && len(results) < w.Steps
	return a.Conclude(ctx, e, id, results, err, toTheEnd || cutShort)
}

// doTrusting is [engine.Engine.Do], and goes on once the person at the terminal has
// confirmed a command that it has come to.
func (a Commands) doTrusting(ctx context.Context, e *engine.Engine, id string, w engine.Work) ([]protocol.StepOutput, error) {
	var results []protocol.StepOutput
	left := w
	err := workflows.New(a.App).Trusting(ctx, e, func() error {
		made, err := e.Do(ctx, id, left)
		results = append(results, made...)
		if len(made) > 0 {
			left.Do, left.Cwd, left.Expect = engine.DoStep, "", ""
			if w.Steps != engine.UntilEnd {
				left.Steps = max(w.Steps-len(results), 1)
			}
		}
		return err
	})
	return results, err
}

// workflowOf is the workflow of a thread.
func (a Commands) workflowOf(ctx context.Context, e *engine.Engine, id string) (protocol.Workflow, error) {
	head, err := e.Head(ctx, id)
	if err != nil {
		return protocol.Workflow{}, err
	}
	t, err := a.OpenThread(ctx, head)
	if err != nil {
		return protocol.Workflow{}, err
	}
	return t.Workflow(ctx)
}

// stepCount reads -c.
func stepCount(c *ucli.Context) (int, error) {
	if c.Bool("until-end") {
		if c.IsSet("count") {
			return 0, cmdline.UsageError("--count and --until-end exclude each other", "--until-end runs as many steps as it takes")
		}
		return engine.UntilEnd, nil
	}
	if !c.IsSet("count") {
		return 1, nil
	}
	return term.NumberFlag(c, "count", 1, 5)
}

func (a Commands) threadResumeCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "resume", ArgsUsage: "<thread>", Usage: "continue a thread to its end, whatever stopped it",
		Description: "A thread that was interrupted, stopped by a limit, or has failed goes on where it was. One that waits\n" +
			"for a person needs an answer, and a completed one something more to do: -p, else a terminal asks for\n" +
			"it; -p '' goes on without words. One that stopped at a limit goes on with --raise-limit, or with as much as\n" +
			"--add-cost, --add-tokens or --add-time grants. Exit status 6 if it waits for a person again.\n\n" +
			"   uwf thread resume @ -p 'Yes, on Monday'\n" +
			"   uwf thread resume @ -c 1                   # one step only",
		Flags: append(append(append(append(append(agentFlags(), limitFlags()...), moreFlags()...), promptFlag(false, "the answer, as `TEXT`; - reads it from stdin, @FILE from a file")),
			&ucli.StringFlag{Name: "count", Aliases: []string{"c"}, Usage: "run up to `N` steps (default: to the end)"},
			&ucli.BoolFlag{Name: "until-end", Usage: "as without --count", Hidden: true}, // it had to be said once
			keepFilesFlag(), moveFlag(), backgroundFlag()), remoteFlags()...),
	}, a.threadResume)
}

func (a Commands) threadResume(ctx context.Context, c *ucli.Context) error {
	w, err := a.workOf(c)
	if err != nil {
		return err
	}
	if !c.IsSet("count") {
		w.Steps = engine.UntilEnd
	}
	w.Wake = true
	if c.IsSet("remote") { // what is granted is of the thread as it stands there
		if _, _, err := a.threadHere(ctx, c); err != nil {
			return err
		}
	}
	if err := a.grant(ctx, c); err != nil {
		return err
	}
	if c.IsSet("prompt") {
		w.Do = engine.DoResume
		if w.Prompt, err = a.promptText(c.String("prompt")); err != nil {
			return err
		}
		return a.work(ctx, c, w)
	}
	id, e, err := a.threadHere(ctx, c)
	if err != nil {
		return err
	}
	at, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case at.Pending: // an answer was given, or none is needed
	case at.Question != nil && at.Question.Schema != nil:
		w.Do, w.Answer = engine.DoAnswer, &engine.Answer{At: at.Head}
		if w.Answer.Value, err = a.askForm(ctx, at); err != nil {
			return err
		}
		if w.Answer.By, err = a.answerer(ctx, c); err != nil {
			return err
		}
	case at.Question != nil, at.Status == protocol.StatusCompleted:
		w.Do = engine.DoResume
		if w.Prompt, err = a.answer(ctx, at); err != nil {
			return err
		}
	case at.Status == protocol.StatusSuspended:
		w.Do = engine.DoResume
	}
	return a.work(ctx, c, w)
}

// answer asks the person at the terminal what a thread is to be told.
func (a Commands) answer(ctx context.Context, at protocol.StepOutput) (string, error) {
	what, example := "is completed: say what else is to be done", "<what else to do>"
	if q := at.Question; q != nil {
		what, example = fmt.Sprintf("waits for an answer: %s asks: %s", q.Role, q.Text), "<answer>"
	}
	if !terminal.Is(a.Env.Stdin) {
		return "", cmdline.UsageError(fmt.Sprintf("thread %s %s", at.Thread, what),
			fmt.Sprintf("uwf thread resume %s -p '%s'", at.Thread, example), fmt.Sprintf("uwf thread resume %s -p '' continues without an answer", at.Thread))
	}
	term.PaintLine(a.Env.Stderr, a.Colour(a.Env.Stderr, terminal.Yellow), plaintext.Indent("? thread "+at.Thread+" "+what))
	return setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, "answer: ")
}

func (a Commands) threadWaitCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "wait", ArgsUsage: "<thread>",
		Usage:       "wait until nothing works on a thread any more",
		Description: "Exit status 6 if it then waits for a person; if the last try failed, that of the failure.",
		Flags:       []ucli.Flag{term.TimeoutFlag("give up after this `TIME`"), remoteFlag("until nobody has the lease of the thread at this `REMOTE`")},
	}, func(ctx context.Context, c *ucli.Context) error {
		if c.IsSet("remote") {
			return a.threadWaitAt(ctx, c)
		}
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
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
			return stillRunning(c, id, "uwf thread stop "+id)
		}
		if err != nil {
			return err
		}
		return a.Stands(app.OutcomeAt(ctx, e, out, nil), true, nil)
	})
}

// threadWaitAt is wait for a thread that is worked on elsewhere.
func (a Commands) threadWaitAt(ctx context.Context, c *ucli.Context) error {
	waiting, cancel, err := waitContext(ctx, c)
	if err != nil {
		return err
	}
	defer cancel()
	id, e, done, err := a.waitAt(waiting, c)
	if done != nil {
		defer done()
	}
	if errors.Is(context.Cause(waiting), errWaited) {
		return stillRunning(c, id, "uwf thread show "+id+" --remote "+plaintext.Word(c.String("remote"))+" says by whom")
	}
	if err != nil {
		return err
	}
	out, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	return a.Stands(app.OutcomeAt(ctx, e, out, nil), true, nil)
}

func stillRunning(c *ucli.Context, id, hint string) error {
	return &protocol.Error{
		Code: protocol.CodeTimeout, Message: fmt.Sprintf("thread %s is still running after %s", id, c.String("timeout")), Hints: []string{hint},
	}
}

var errWaited = errors.New("waited long enough")

// waitContext bounds a wait.
func waitContext(ctx context.Context, c *ucli.Context) (context.Context, context.CancelFunc, error) {
	d, err := term.TimeoutOf(c)
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
