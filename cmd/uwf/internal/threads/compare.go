package threads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/steps"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/runfiles"
)

type threadDiffOutput struct {
	Old protocol.Hash `json:"old"` // heads
	New protocol.Hash `json:"new"`
	view.Diff
}

func (a Commands) threadDiffCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "diff", ArgsUsage: "<thread> <thread>",
		Usage: "compare two threads step by step",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "files", Usage: "compare the files after the last steps instead"},
			steps.StatFlag("with --files: print only file names and line counts")},
	}, a.threadDiff)
}

func (a Commands) threadDiff(ctx context.Context, c *ucli.Context) error {
	old, err := a.headOf(ctx, c.Args().Get(0))
	if err != nil {
		return err
	}
	new, err := a.headOf(ctx, c.Args().Get(1))
	if err != nil {
		return err
	}
	if c.Bool("files") {
		return a.filesDiff(ctx, old, new, c.Bool("stat"))
	}
	if c.Bool("stat") {
		return cmdline.UsageError("--stat works only with --files", "--files --stat")
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	d, err := view.Compare(ctx, s, old, new)
	if err != nil {
		return err
	}
	if !d.Equal {
		a.Status = protocol.CodeFailed
	}
	return a.Print(threadDiffOutput{Old: old, New: new, Diff: d}, func(w *term.Page) {
		w.Coloured(fmt.Sprintf("--- %s\n+++ %s\n%s", c.Args().Get(0), c.Args().Get(1), view.DiffText(d)), term.OfDiff)
	})
}

type filesDiffOutput struct {
	Old   protocol.Hash      `json:"old"` // heads
	New   protocol.Hash      `json:"new"`
	Equal bool               `json:"equal"`
	Files []steps.FileChange `json:"files"`
}

// filesDiff compares the files after two steps.
func (a Commands) filesDiff(ctx context.Context, old, new protocol.Hash, stat bool) error {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	between, err := e.Files().FilesBetween(ctx, old, new)
	if err != nil {
		return err
	}
	list, err := between.Changes(ctx)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		a.Status = protocol.CodeFailed
	}
	out := filesDiffOutput{Old: old, New: new, Equal: len(list) == 0, Files: steps.FileChanges(list)}
	return steps.Commands{App: a.App}.PrintFiles(ctx, out, between, list, stat)
}

// headOf returns the head of a thread, or a step.
func (a Commands) headOf(ctx context.Context, arg string) (protocol.Hash, error) {
	if arg != names.Newest && strings.Contains(arg, "@") {
		return a.Address(ctx, arg)
	}
	id, err := a.Thread(ctx, arg)
	if err == nil {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return "", err
		}
		return e.Reader.Head(ctx, id)
	}
	var coded *protocol.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeNotFound {
		if h, nodeErr := a.Node(ctx, arg); nodeErr == nil { // a step of a deleted thread
			return h, nil
		}
	}
	return "", err
}

// replayOutput is the result of thread replay: the result of run, the starting point, and the differences.
type replayOutput struct {
	protocol.RunOutput
	ForkedFrom protocol.ForkedFrom `json:"forkedFrom"`
	Diff       threadDiffOutput    `json:"diff"`
}

func (a Commands) threadReplayCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "replay", ArgsUsage: "<thread>",
		Usage: "run a thread again and compare the results",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "from", Usage: "`STEP` first step to run again: a number, role, role@visit or hash", Value: "1"},
			agentFlag(),
			term.Timeout("`DURATION` timeout of each step"), moveFlag(), backgroundFlag(),
		},
	}, a.threadReplay)
}

func (a Commands) threadReplay(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.ThreadAndEngine(ctx, c, a.Progress())
	if err != nil {
		return err
	}
	old, err := e.Reader.Head(ctx, id)
	if err != nil {
		return err
	}
	step, wf, err := a.replayFrom(ctx, id, old, c.String("from"))
	if err != nil {
		return err
	}
	work := engine.Work{Steps: engine.UntilEnd, StepOptions: engine.StepOptions{Timeout: term.SpanOf(c, "timeout")}}
	if err := agentsByRole(c.StringSlice("agent"), func() (protocol.Workflow, error) { return wf, nil }, &work.StepOptions); err != nil {
		return err
	}
	if err := e.Casting().Named(ctx, work.Choices()); err != nil {
		return err
	}
	cwd, err := a.movedTo(c)
	if err != nil {
		return err
	}
	fork, from, err := e.ForkBefore(ctx, id, step, cwd)
	if err != nil {
		return err
	}
	a.Messagef("thread %s", fork)
	a.printWorktree(ctx, e, fork)
	if c.Bool("background") {
		return a.inBackground(ctx, e, fork, work)
	}
	results, runErr := e.DoTrusting(ctx, fork, work, a.AskTrust)
	out, err := replayed(ctx, e, fork, old, results, runErr)
	if err != nil {
		return errors.Join(withNext(runErr, fork), err)
	}
	out.ForkedFrom = protocol.ForkedFrom{Thread: id, Step: from}
	err = a.Print(out, func(w *term.Page) {
		a.ResultText(w, out.StepOutput)
		w.Coloured(fmt.Sprintf("--- %s\n+++ %s\n%s", id, fork, view.DiffText(out.Diff.Diff)), term.OfDiff)
	})
	a.PrintState(ctx, e, out.RunOutput, true, runErr)
	return errors.Join(err, withNext(runErr, fork))
}

// replayFrom returns the first step to replay, or the start of an empty thread, and the workflow.
func (a Commands) replayFrom(ctx context.Context, id string, head protocol.Hash, first string) (protocol.Hash, protocol.Workflow, error) {
	t, err := a.OpenThread(ctx, head)
	if err != nil {
		return "", protocol.Workflow{}, err
	}
	wf, err := t.Workflow(ctx)
	if err != nil || t.Last == nil {
		return t.StartHash, wf, err
	}
	step, err := a.AddressIn(ctx, id, first)
	return step, wf, err
}

// replayed returns the state of the new thread and the differences.
func replayed(ctx context.Context, e *engine.Engine, fork string, old protocol.Hash, results []protocol.StepOutput, runErr error) (replayOutput, error) {
	ctx = context.WithoutCancel(ctx) // after a signal, show what was done
	run, err := app.Outcome(ctx, e, fork, results, runErr)
	out := replayOutput{RunOutput: run}
	if err != nil {
		return out, err
	}
	out.Diff.Old, out.Diff.New = old, run.Head
	out.Diff.Diff, err = view.Compare(ctx, e.Reader.Store, old, run.Head)
	return out, err
}

func (a Commands) threadBisectCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "bisect", ArgsUsage: "<good> <bad> <command…>", Usage: "find the step that broke a command",
	}, a.threadBisect)
}

func (a Commands) threadBisect(ctx context.Context, c *ucli.Context) error {
	argv := c.Args().Slice()[2:]
	good, err := a.headOf(ctx, c.Args().Get(0))
	if err != nil {
		return err
	}
	bad, err := a.headOf(ctx, c.Args().Get(1))
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	o := worktree.BisectOptions{Argv: argv, Tried: func(s protocol.BisectedStep) { a.Messagef("step %s: %s", bisectedText(s), s.Result) }}
	o.Out, _ = a.Env.Stderr.(*os.File)
	if a.Flags.Quiet {
		o.Out = nil
	}
	out, err := e.Files().Bisect(ctx, good, bad, o)
	if err != nil {
		return err
	}
	if n := len(out.Unsure); n > 0 {
		a.Messagef("uwf: %s before it could not be tested; the first bad step may be one of them", render.Count(n, "step"))
	}
	a.Hint("uwf step diff %s", out.First.Step)
	return a.Printf(out, "%s  step %s\n", out.First.Step, bisectedText(out.First))
}

// bisectedText returns a step with its number and role.
func bisectedText(s protocol.BisectedStep) string {
	if s.Number == 0 {
		return "0 (the start)"
	}
	return strings.TrimSpace(fmt.Sprintf("%d (%s)", s.Number, plaintext.Line(s.Role)))
}

func (a Commands) threadDiagnoseCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "diagnose", ArgsUsage: "<thread>", Usage: "find out why a thread does not continue",
	}, a.threadDiagnose)
}

func (a Commands) threadDiagnose(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	d, err := view.Diagnose(ctx, e, id)
	if err != nil {
		return err
	}
	if d.Status == protocol.StatusCorrupt {
		a.Status = protocol.CodeCorrupt
	}
	return a.Print(d, func(w *term.Page) { diagnosisText(w, d, a.Env.Now()) })
}

// diagnosisText prints the findings, most severe first, then the last try.
func diagnosisText(w *term.Page, d protocol.ThreadDiagnosis, now time.Time) {
	w.Values("thread", d.Thread, "status", string(d.Status), "head", string(d.Head))
	for _, level := range []string{"error", "warning", "note"} {
		for _, f := range d.Findings {
			if f.Level != level {
				continue
			}
			w.Printf("\n%s: %s\n", level, term.Lines(f.Message, "    "))
			for _, hint := range strings.Split(f.Hint, "\n") {
				if hint != "" {
					w.Printf("  → %s\n", plaintext.Line(hint))
				}
			}
		}
	}
	if len(d.Findings) == 0 {
		w.Printf("\nno problems found\n")
	}
	if d.Run == nil {
		return
	}
	r := d.Run
	w.Printf("\n")
	heard := ""
	if r.LastOutputAt != nil {
		heard = app.TimeText(r.LastOutputAt, now)
	}
	w.Values("last try", fmt.Sprintf("role %s, %s", plaintext.Line(r.Role), r.Status), "agent", plaintext.Line(r.Agent),
		"command", plaintext.Line(strings.Join(r.Command, " ")), "started", app.TimeText(&r.StartedAt, now), "last output", heard, "files", r.Dir)
	for _, part := range []struct{ name, text string }{{"stderr", r.Stderr}, {runfiles.LogFile, r.WorkerLog}} {
		if part.text != "" {
			w.Printf("%s ends:\n    %s\n", part.name, term.Lines(part.text, "    "))
		}
	}
}

func (a Commands) threadWatchCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "watch", ArgsUsage: "<thread>", Usage: "follow a thread until it stops",
	}, a.threadWatch)
}

func (a Commands) threadWatch(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	asJSON := a.Flags.Format == string(render.JSON)
	shown := a.Display(a.Env.Stdout)
	report := shown.Show
	if asJSON {
		report = func(ev engine.Event) { putEvent(a.Env.Stdout, ev) }
	}
	if err := view.Follow(ctx, e, id, report); err != nil {
		return a.unwatched(shown, err)
	}
	out, err := e.Reader.Show(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		a.EndsAs(out)
		a.PrintNext(ctx, e, out)
		return json.NewEncoder(a.Env.Stdout).Encode(watchEvent{Event: "end", Thread: id, Output: &out})
	}
	a.Flags.Format = string(render.Text)
	return a.PrintOutcome(ctx, e, app.OutcomeAt(ctx, e, out, nil), true, nil)
}

// unwatched ends watching early. An interrupt by the user is not an error, but the exit status shows that the
// output is incomplete.
func (a Commands) unwatched(shown *app.Display, err error) error {
	var signal *engine.SignalError
	if !errors.As(err, &signal) {
		return err
	}
	if a.Flags.Format != string(render.JSON) {
		shown.Leave()
	}
	a.Status = app.Classify(err).Code
	return nil
}

// watchEvent is a line of the output of thread watch.
type watchEvent struct {
	Event     string                 `json:"event"` // step-started, turn, writing, step-ended, children, end
	Thread    string                 `json:"thread"`
	Path      string                 `json:"path,omitempty"`   // path of a child, relative to the watched thread
	Label     string                 `json:"label,omitempty"`  // the path with items instead of their keys
	Number    int                    `json:"number,omitempty"` // of the step, from 1
	Role      string                 `json:"role,omitempty"`
	Agent     string                 `json:"agent,omitempty"`
	StartedAt int64                  `json:"startedAt,omitempty"` // in ms
	Turn      *protocol.Turn         `json:"turn,omitempty"`
	Output    *protocol.StepOutput   `json:"output,omitempty"`
	Children  []protocol.ChildOutput `json:"children,omitempty"`
	Error     string                 `json:"error,omitempty"`
}

// putEvent writes an event as a line.
func putEvent(w io.Writer, ev engine.Event) {
	line := watchEvent{
		Event: string(ev.Kind), Thread: ev.Step.Thread, Path: ev.Step.Path, Label: ev.Step.Label, Number: ev.Step.Number, Role: ev.Step.Role, Agent: ev.Step.Agent,
		Turn: ev.Turn, Output: ev.Output, Children: ev.Children,
	}
	if ev.Kind != engine.Children {
		line.StartedAt = ev.Step.Started.UnixMilli()
	}
	if ev.Err != nil {
		line.Error = ev.Err.Error()
	}
	_ = json.NewEncoder(w).Encode(line) // the reader may have closed the pipe
}
