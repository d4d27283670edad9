package threads

import (
	"context"
	"errors"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/threaddiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// replayOutput answers thread replay: what run answers, where it began, and how
// it differs.
type replayOutput struct {
	protocol.RunOutput
	ForkedFrom protocol.ForkedFrom `json:"forkedFrom"`
	Diff       threadDiffOutput    `json:"diff"`
}

func (a Commands) threadReplayCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "replay", ArgsUsage: "<thread>",
		Usage: "run the steps of a thread again in a new thread, and show what differs",
		Description: "The new thread has the same task. It begins at the start, or with --from at the step before the\n" +
			"one that is named: that one is made again. It runs to the end, or until a person is needed. With --background,\n" +
			"thread diff shows later what differs.\n\n" +
			"   uwf thread replay @ --from reviewer --agent reviewer=second-opinion",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "from", Usage: "the first `STEP` to run again: a hash, a number, a role, role@visit (default: 1)", Value: "1"},
			agentFlag(),
			term.TimeoutFlag("stop a step's agent after this `TIME`"), moveFlag(), backgroundFlag(),
		},
	}, a.threadReplay)
}

func (a Commands) threadReplay(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.ThreadAndEngine(ctx, c, a.Progress())
	if err != nil {
		return err
	}
	old, err := e.Head(ctx, id)
	if err != nil {
		return err
	}
	from, again, wf, err := a.replayFrom(ctx, id, old, c.String("from"))
	if err != nil {
		return err
	}
	work := engine.Work{Steps: engine.UntilEnd}
	if work.Timeout, err = term.TimeoutOf(c); err != nil {
		return err
	}
	if err := agentsByRole(c.StringSlice("agent"), func() (protocol.Workflow, error) { return wf, nil }, &work.StepOptions); err != nil {
		return err
	}
	if err := e.Casting().Named(ctx, work.Wish()); err != nil {
		return err
	}
	cwd, err := a.movedTo(c)
	if err != nil {
		return err
	}
	if cwd == "" {
		if err := e.Settled(ctx, id); err != nil {
			return err
		}
	}
	fork, err := e.ForkWith(ctx, from, engine.ForkOptions{Thread: id, Cwd: cwd, Before: again, Detached: true})
	if err != nil {
		return err
	}
	a.Say("thread %s", fork)
	a.sayWorktree(ctx, e, fork)
	if c.Bool("background") {
		return a.inBackground(ctx, e, fork, work)
	}
	results, runErr := a.doTrusting(ctx, e, fork, work)
	out, err := replayed(ctx, e, fork, old, results, runErr)
	if err != nil {
		return errors.Join(withNext(runErr, fork), err)
	}
	out.ForkedFrom = protocol.ForkedFrom{Thread: id, Step: from}
	err = a.Print(out, func(w io.Writer) error {
		if err := a.ResultText(w, out.StepOutput); err != nil {
			return err
		}
		return a.InColours(w, fmt.Sprintf("--- %s\n+++ %s\n%s", id, fork, threaddiff.Text(out.Diff.Diff)), term.OfDiff)
	})
	a.SayStanding(out.RunOutput, true, runErr)
	return errors.Join(err, withNext(runErr, fork))
}

// replayFrom is the node that a replay goes on from, the step that it makes again ("":
// the first), and the workflow.
func (a Commands) replayFrom(ctx context.Context, id string, head protocol.Hash, first string) (from, again protocol.Hash, wf protocol.Workflow, err error) {
	var none protocol.Workflow
	t, err := a.OpenThread(ctx, head)
	if err != nil {
		return "", "", none, err
	}
	wf, err = t.Workflow(ctx)
	if err != nil {
		return "", "", none, err
	}
	if t.Last == nil {
		return t.StartHash, "", wf, nil
	}
	h, err := a.AddressIn(ctx, id, first)
	if err != nil {
		return "", "", none, err
	}
	if h == t.StartHash {
		return t.StartHash, "", wf, nil
	}
	for step, err := range t.Steps(ctx) {
		switch {
		case err != nil:
			return "", "", none, err
		case step.Hash != h:
		case step.Prev == nil:
			return t.StartHash, h, wf, nil
		default:
			return *step.Prev, h, wf, nil
		}
	}
	return "", "", none, cmdline.NotFound(fmt.Sprintf("step %s not found in thread %s", h, id), "uwf thread steps "+id)
}

// replayed says how the new thread stands and what differs.
func replayed(ctx context.Context, e *engine.Engine, fork string, old protocol.Hash, results []protocol.StepOutput, runErr error) (replayOutput, error) {
	ctx = context.WithoutCancel(ctx) // what was done until a signal is shown, too
	run, err := app.Outcome(ctx, e, fork, results, runErr)
	out := replayOutput{RunOutput: run}
	if err != nil {
		return out, err
	}
	out.Diff.Old, out.Diff.New = old, run.Head
	out.Diff.Diff, err = threaddiff.Compare(ctx, e.Store, old, run.Head)
	return out, err
}
