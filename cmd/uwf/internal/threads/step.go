package threads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/dryrun"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

func (a Commands) agentFlags() []ucli.Flag {
	return []ucli.Flag{
		agentFlag(), a.scenarioFlag(),
		&ucli.BoolFlag{Name: "discard-result", Usage: "discard the result of an interrupted step and run the step again"},
		term.Timeout("`DURATION` timeout of each step"),
		term.Number(ucli.StringFlag{Name: "parallel", Usage: "`N` maximum number of threads to run at once (default two per CPU)"}, 1, 4),
	}
}

// agentFlag returns --agent; see agentsByRole.
func agentFlag() ucli.Flag {
	return &ucli.StringSliceFlag{Name: "agent", Usage: "`[ROLE=]AGENT` agent of a role, or of all: an alias of the config, " +
		"an installed agent such as codex, or a command line"}
}

// scenarioFlag returns the flag for a script that plays every role.
func (a Commands) scenarioFlag() ucli.Flag {
	f := ucli.StringFlag{Name: "scenario", Usage: "`FILE` play all roles with uwf-mock from this script"}
	return term.Checked(f, func(_, file string) error {
		if _, err := os.Stat(a.Env.Path(file)); err != nil {
			return cmdline.NotFound("scenario not found: " + file)
		}
		return nil
	})
}

// stepOptions converts the flags except --agent, which depends on the workflow's roles.
func (a Commands) stepOptions(c *ucli.Context) engine.StepOptions {
	o := engine.StepOptions{
		Fresh: c.Bool("discard-result"), KeepFiles: c.Bool("keep-files"),
		Timeout: term.SpanOf(c, "timeout"), Parallel: term.NumberOf(c, "parallel"),
	}
	if c.IsSet("scenario") {
		o.Scenario = a.Env.Path(c.String("scenario"))
	}
	return o
}

func (a Commands) threadStepCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "step", Aliases: []string{"exec"}, ArgsUsage: "<thread>",
		Usage: "run the next step of a thread",
		Flags: append(append(append(a.agentFlags(), keepFilesFlag()), countFlags()...), remoteFlags()...),
	}, func(ctx context.Context, c *ucli.Context) error { return a.work(ctx, c, a.workOf(c)) })
}

// countFlags returns the flags of commands that can make several steps.
func countFlags() []ucli.Flag {
	return []ucli.Flag{
		term.Number(ucli.StringFlag{Name: "count", Aliases: []string{"c"}, Usage: "`N` maximum number of steps to run", Value: "1"}, 1, 5),
		&ucli.BoolFlag{
			Name: "until-end", Usage: "run until the thread ends or needs you",
			Action: cmdline.Excludes[bool]("until-end", "count", "--until-end runs all steps"),
		},
		moveFlag(), backgroundFlag(),
	}
}

func backgroundFlag() ucli.Flag {
	return &ucli.BoolFlag{
		Name: "background", Usage: "return as soon as the first agent has started",
		Action: cmdline.Excludes[bool]("background", "remote"),
	}
}

// workOf converts the flags to the work to do on a thread.
func (a Commands) workOf(c *ucli.Context) engine.Work {
	expect, _ := protocol.ParseHash(c.String("if-head")) // validated when the flag was parsed
	w := engine.Work{Steps: max(term.NumberOf(c, "count"), 1), Expect: expect, StepOptions: a.stepOptions(c)}
	if c.Bool("until-end") {
		w.Steps = engine.UntilEnd
	}
	return w
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
	if err != nil && w.Do == engine.DoPoke && strings.Contains(c.Args().First(), names.Newest) {
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
	if err := e.Casting().Named(ctx, w.Choices()); err != nil {
		return err
	}
	if terminal.Is(a.Env.Stdin) && w.Cwd == "" { // other problems are reported below
		err := e.Trusting(ctx, a.AskTrust, func() error { return e.Settled(ctx, id) })
		if errors.As(err, new(*engine.UntrustedError)) {
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
		a.Messagef("thread %s: its children still have to run; -c counts only the thread's own steps", id)
	}
	a.noteScenario(w.StepOptions, results)
	// After a single step, only a failure of the workflow affects the exit status.
	last := results[len(results)-1].Status
	toTheEnd := w.Steps == engine.UntilEnd || w.Do == engine.DoResume || last == protocol.StatusFailed
	cutShort := last == protocol.StatusError && len(results) < w.Steps
	return a.Conclude(ctx, e, id, results, err, toTheEnd || cutShort)
}

// noteScenario reminds of --scenario, which threads don't keep, if the thread can continue.
func (a Commands) noteScenario(o engine.StepOptions, results []protocol.StepOutput) {
	if n := len(results); o.Scenario != "" && (n == 0 || !results[n-1].Status.AtEnd()) {
		a.Messagef("note: to continue with the same script, add --scenario %s", plaintext.Word(o.Scenario))
	}
}

// workflowOf returns the workflow of a thread.
func (a Commands) workflowOf(ctx context.Context, e *engine.Engine, id string) (protocol.Workflow, error) {
	head, err := e.Reader.Head(ctx, id)
	if err != nil {
		return protocol.Workflow{}, err
	}
	t, err := a.OpenThread(ctx, head)
	if err != nil {
		return protocol.Workflow{}, err
	}
	return t.Workflow(ctx)
}

func (a Commands) threadResumeCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "resume", ArgsUsage: "<thread>", Usage: "continue a thread to its end, whatever stopped it",
		Flags: append(append(append(append(append(a.agentFlags(), limitFlags()...), moreFlags()...), promptFlag(false, "`TEXT` answer or next instruction; - reads it from stdin, @FILE from a file")),
			term.Number(ucli.StringFlag{Name: "count", Aliases: []string{"c"}, Usage: "`N` maximum number of steps to run (default unlimited)"}, 1, 5),
			keepFilesFlag(), moveFlag(), backgroundFlag()), remoteFlags()...),
	}, a.threadResume)
}

func (a Commands) threadResume(ctx context.Context, c *ucli.Context) error {
	w := a.workOf(c)
	if !c.IsSet("count") {
		w.Steps = engine.UntilEnd
	}
	w.Wake = true
	if c.IsSet("remote") { // limits are raised on the thread's state at the remote
		if _, _, err := a.threadHere(ctx, c); err != nil {
			return err
		}
	}
	if err := a.grant(ctx, c); err != nil {
		return err
	}
	if c.IsSet("prompt") {
		var err error
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
	at, err := e.Reader.Show(ctx, id)
	if err != nil {
		return err
	}
	can, err := e.Reader.Actions(ctx, id)
	if err != nil {
		return err
	}
	next := slices.IndexFunc(can, func(a protocol.Action) bool {
		return a.Verb == protocol.VerbContinue || a.Verb == protocol.VerbAnswer || a.Verb == protocol.VerbResume
	})
	switch {
	case at.Pending: // an answer was given, or none is needed
	case next >= 0 && can[next].Verb == protocol.VerbAnswer:
		w.Do, w.Answer = engine.DoAnswer, &engine.Answer{At: at.Head}
		if w.Answer.Value, err = a.askForm(ctx, e, at); err != nil {
			return err
		}
		if w.Answer.By, err = a.answerer(ctx, c); err != nil {
			return err
		}
	case next >= 0 && can[next].Verb == protocol.VerbResume:
		w.Do = engine.DoResume
		if w.Prompt, err = a.answer(ctx, at); err != nil {
			return err
		}
	case at.Status == protocol.StatusSuspended:
		w.Do = engine.DoResume
	}
	return a.work(ctx, c, w)
}

// answer asks the user for the message to a thread.
func (a Commands) answer(ctx context.Context, at protocol.StepOutput) (string, error) {
	what, example := "is completed: say what else is to be done", "<what else to do>"
	if q := at.Question; q != nil {
		what, example = fmt.Sprintf("waits for an answer: %s asks: %s", q.Role, q.Text), "<answer>"
	}
	if !terminal.Is(a.Env.Stdin) {
		return "", cmdline.UsageError(fmt.Sprintf("thread %s %s", at.Thread, what),
			hints.Command(a.WorksAt, "thread", "resume", at.Thread, "-p", example),
			"to continue without an answer: "+hints.Command(a.WorksAt, "thread", "resume", at.Thread, "-p", ""))
	}
	term.PaintLine(a.Env.Stderr, a.Colour(a.Env.Stderr, terminal.Yellow), plaintext.Indent("? thread "+at.Thread+" "+what))
	return setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, "answer: ")
}

func (a Commands) threadWaitCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "wait", ArgsUsage: "<thread>",
		Usage: "wait until a thread stops",
		Flags: []ucli.Flag{term.Timeout("`DURATION` give up after this time"), remoteFlag("`REMOTE` wait until no one holds the thread's lease on this remote")},
	}, a.threadWait)
}

var errWaited = errors.New("wait timed out")

func (a Commands) threadWait(ctx context.Context, c *ucli.Context) error {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if d := term.SpanOf(c, "timeout"); d > 0 {
		waiting, cancel = context.WithTimeoutCause(ctx, d, errWaited)
	}
	defer cancel()
	id, e, out, done, err := a.waitedFor(ctx, waiting, c)
	defer done()
	if errors.Is(context.Cause(waiting), errWaited) {
		hint := "uwf thread stop " + id
		if c.IsSet("remote") {
			hint = "to see its worker: uwf thread show " + id + " --remote " + plaintext.Word(c.String("remote"))
		}
		return cmdline.Coded(protocol.CodeTimeout, fmt.Sprintf("thread %s is still running after %s", id, c.String("timeout")),
			hint)
	}
	if err != nil {
		return err
	}
	return a.PrintOutcome(ctx, e, app.OutcomeAt(ctx, e, out, nil), true, nil)
}

// agentsByRole parses --agent. The text before the first "=" is a role if it is a valid role name; a command
// line with "=" in its first word needs quotes. workflow is called only if a role is given.
func agentsByRole(values []string, workflow func() (protocol.Workflow, error), o *engine.StepOptions) error {
	for _, v := range values {
		role, agent, found := strings.Cut(v, "=")
		if !found || strings.ContainsAny(role, " /\\'\"") {
			role, agent = "", v
		}
		if strings.TrimSpace(agent) == "" || (found && role == "" && agent != v) {
			return cmdline.UsageError("--agent is empty", "--agent <alias or command>", "--agent <role>=<alias or command>")
		}
		if role == "" {
			o.Agent = agent
			continue
		}
		wf, err := workflow()
		if err != nil {
			return err
		}
		if _, known := wf.Roles[role]; !known {
			roles := slices.Sorted(maps.Keys(wf.Roles))
			return cmdline.UsageError(fmt.Sprintf("--agent: workflow %[2]s has no role %[1]q", role, wf.Name), cmdline.Choices("", role, roles)...)
		}
		if player := wf.Roles[role].Player(); player != protocol.PlayedByAgent {
			return cmdline.UsageError(fmt.Sprintf("role %q is played by a %s, not by an agent", role, player))
		}
		if o.Agents == nil {
			o.Agents = map[string]string{}
		}
		o.Agents[role] = agent
	}
	return nil
}

// threadRetryCommand returns uwf thread retry, and the original's poke.
func (a Commands) threadRetryCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "retry", Aliases: []string{"poke"}, ArgsUsage: "<thread|step>",
		Usage: "run a step or a child thread again",
		Flags: append(append(a.agentFlags(), keepFilesFlag(), promptFlag(false, "`TEXT` new instructions; - reads them from stdin, @FILE from a file")),
			append(countFlags(), remoteFlags()...)...),
	}, a.threadRetry)
}

func (a Commands) threadRetry(ctx context.Context, c *ucli.Context) error {
	w, err := a.workOf(c), error(nil)
	parent, key, child := names.CutChild(c.Args().First())
	if child && !c.IsSet("prompt") {
		return a.retryChild(ctx, parent, key)
	}
	w.Do = engine.DoPoke
	if c.IsSet("prompt") {
		if w.Prompt, err = a.promptText(c.String("prompt")); err != nil {
			return err
		}
		if strings.TrimSpace(w.Prompt) == "" {
			return cmdline.UsageError("the prompt is empty", "-p '<new instructions>'")
		}
	} else if strings.LastIndex(c.Args().First(), names.Newest) <= 0 { // not <thread>@<step>
		isRetry := func(r protocol.Reason) bool { return r.Data["again"] == protocol.AgainRetry } // which is repeated as such
		if id, e, err := a.threadHere(ctx, c); err == nil {
			if at, err := e.Reader.Show(ctx, id); err == nil && at.Status == protocol.StatusError &&
				!slices.ContainsFunc(at.Error.Reasons, isRetry) {
				w.Do, w.Wake = engine.DoStep, true
			}
		}
	}
	return a.work(ctx, c, w)
}

// retryChild discards a child's result.
func (a Commands) retryChild(ctx context.Context, parent, key string) error {
	id, err := a.Thread(ctx, parent)
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := e.Do(ctx, id, engine.Work{Do: engine.DoRetry, Key: key}); err != nil {
		return err
	}
	at, err := e.Reader.Show(ctx, id)
	if err != nil {
		return err
	}
	out := protocol.ChildAgain{Parent: id, Hint: "uwf thread resume " + id}
	for _, c := range at.Children {
		if c.Key == key {
			out.ChildOutput = c
		}
	}
	return a.Printf(out, "child %s: %s, will run again\nhint: %s\n", names.Child(out.Key, out.Label), out.Status, out.Hint)
}

// inBackground starts a worker for a thread and prints its first report.
func (a Commands) inBackground(ctx context.Context, e *engine.Engine, id string, w engine.Work) error {
	out, err := e.Background(ctx, id, w)
	if err != nil {
		return err
	}
	if out.Status == protocol.StatusRunning {
		a.Messagef("uwf: thread %s runs in the background; its log: %s", id, e.WorkerLog(id))
	}
	return a.PrintOutcome(ctx, e, app.OutcomeAt(ctx, e, out, nil), w.Steps == engine.UntilEnd, nil)
}

// running lists the threads, including children, that have a running process, with its ID.
func (a Commands) running(ctx context.Context, f view.Filter) (iter.Seq[protocol.ThreadItem], error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	runs, err := e.Reader.Running(ctx)
	if err != nil {
		a.Messagef("uwf: %v", err)
		a.Status = app.Classify(err).Code
	}
	byThread := map[string]*protocol.RunningThread{}
	for i, r := range runs {
		byThread[r.Thread] = &runs[i]
	}
	f.Children, f.Statuses = true, nil // between two steps of a process, its thread is idle
	entries := slices.DeleteFunc(view.Listed(ctx, e.Reader.Heads, f, func(error) {}), func(l status.Listed) bool {
		return byThread[l.Thread] == nil
	})
	return func(yield func(protocol.ThreadItem) bool) {
		for item := range view.Items(ctx, e, entries, f) {
			item.Status, item.Run = protocol.StatusRunning, byThread[item.Thread]
			if !yield(item) {
				return
			}
		}
	}, nil
}

func runningText(w *term.Page, items iter.Seq[protocol.ThreadItem], now time.Time) {
	t, some := term.NewTable("THREAD", "ROLE", "AGENT", "STARTED", "PID", "AGENT PID"), false
	for it := range items {
		r, pid := *it.Run, "gone"
		if root, key, child := strings.Cut(r.Path, "/"); child && !it.Imported {
			r.Path = names.Short(root) + "/" + key
		}
		if some = true; r.Pid != 0 {
			pid = strconv.Itoa(r.Pid)
		}
		t.Row(names.Child(cmp.Or(r.Path, r.Thread), r.Label), r.Role, r.Agent, app.TimeText(&r.StartedAt, now), pid, strconv.Itoa(r.AgentPid))
	}
	if !some {
		w.Printf("nothing is running\n")
		return
	}
	w.Table(t)
}

// Run returns the command uwf run.
func (a Commands) Run() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "run", ArgsUsage: "<workflow>",
		Usage: "start a thread and run it to the end",
		Flags: append(slices.Concat(a.agentFlags(), varFlags(), limitFlags(), treeFlags()), titleFlag(), promptFlag(true, "`TEXT` task; - reads it from stdin, @FILE from a file"), cwdFlag(), workflows.YesFlag(), backgroundFlag(),
			remoteFlag("`REMOTE` push the thread and each step to this remote; other workers run its children"), leaseFlag(),
			&ucli.BoolFlag{Name: "wait", Usage: "wait out rate limits of the provider"},
			&ucli.BoolFlag{
				Name: "dry-run", Usage: "print the plan and the agent of each role; start nothing",
				Action: cmdline.Excludes[bool]("dry-run", "remote", "--dry-run starts nothing"),
			}),
	}, a.runWorkflow)
}

func (a Commands) runWorkflow(ctx context.Context, c *ucli.Context) error {
	o, l := a.stepOptions(c), limitsOf(c)
	if c.Bool("dry-run") {
		return a.dryRun(ctx, c, o, l)
	}
	var at shared
	var err error
	if c.IsSet("remote") { // fail on an unreachable remote before the thread is created
		if at, err = a.linked(ctx, c, a.Progress()); err != nil {
			return err
		}
		defer at.close()
	}
	started, err := a.start(ctx, c, l, func(e *engine.Engine, s protocol.Start) error {
		workflow := func() (protocol.Workflow, error) { return cas.Read[protocol.Workflow](ctx, e.Reader.Store, s.Workflow) }
		if err := agentsByRole(c.StringSlice("agent"), workflow, &o); err != nil {
			return err
		}
		return dryrun.Check(ctx, e, s, l, o)
	})
	if err != nil {
		return err
	}
	a.Messagef("thread %s", started.Thread)
	o.Wake = true // an explicit request ignores recorded rate limits
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
		a.Messagef("thread %s: %s", started.Thread, app.StateText(results[len(results)-1]))
		if runErr = e.Reader.AwaitParked(ctx, started.Thread); runErr == nil {
			results, runErr = run()
		}
	}
	a.noteScenario(o, results)
	return a.Conclude(ctx, e, started.Thread, results, withNext(runErr, started.Thread), true)
}

// withNext adds a hint about continuing to the error that ended a run.
func withNext(err error, thread string) error {
	if err == nil {
		return nil
	}
	coded := app.Classify(err)
	if app.HasHints(coded) {
		return err
	}
	return (&protocol.Error{Code: coded.Code, Message: coded.Message, Err: err}).Because("last-try-failed", "thread", thread,
		"again", protocol.AgainResume)
}

// planOutput is the result of run --dry-run.
type planOutput struct {
	dryrun.Plan
	graph diagram.Graph
}

// dryRun shows what run would do, without storing or starting anything.
func (a Commands) dryRun(ctx context.Context, c *ucli.Context, o engine.StepOptions, l protocol.Limits) error {
	prompt, err := a.taskText(c)
	if err != nil {
		return err
	}
	cwd, err := a.workDir(c.String("cwd"))
	if err != nil {
		return err
	}
	def, err := a.Workflows().Definition(ctx, c.Args().First())
	if err != nil {
		return err
	}
	err = agentsByRole(c.StringSlice("agent"), func() (protocol.Workflow, error) { return def.Workflow, nil }, &o)
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, nil)
	if err == nil {
		e, err = e.InProject(cwd)
	}
	if err != nil {
		return err
	}
	given, err := a.givenInputs(c, dryrun.Declared(def))
	if err != nil {
		return err
	}
	system, _ := a.System()
	p := planOutput{graph: diagram.Of(def.Workflow)}
	p.Plan, err = dryrun.Of(ctx, e, a.Workflows(), dryrun.Run{
		Definition: def, Start: protocol.Start{Prompt: prompt, Cwd: cwd}, Given: given, Limits: l, Step: o, Env: a.Env,
		System: system, Hints: func(err *protocol.Error) []string { return hints.All(a.WorksAt, err) },
	})
	if a.Status = p.Code; err != nil {
		return err
	}
	return a.Print(p, func(w *term.Page) { p.text(w, a.Width()) })
}

func (p planOutput) text(w *term.Page, width int) {
	w.Printf("%s\n", p.graph.Text(width))
	t := term.NewTable("ROLE", "AGENT", "MODEL", "TIMEOUT", "AT MOST")
	var agents []string
	for _, r := range p.Roles {
		agent := string(cmp.Or(r.Agent, "none"))
		t.Row(r.Role, agent, string(cmp.Or(r.Model, "-")), string(cmp.Or(r.Timeout, "none")), dryrun.WorstText(r.Worst))
		if r.Agent == "" {
			continue // its problem follows
		}
		if line := plaintext.Line(fmt.Sprintf("%s (%s): %s", agent, r.Program(), cmp.Or(r.May, "-"))); !slices.Contains(agents, line) {
			agents = append(agents, line)
		}
	}
	w.Table(t)
	for _, line := range agents {
		w.Printf("%s\n", strings.Join(cmdline.Wrap(line, cmp.Or(w.Width, 1<<20)), "\n  "))
	}
	for _, r := range p.Roles {
		if runs := r.Runs(); runs != "" {
			w.Printf("%s runs: %s\n", plaintext.Line(r.Role), runs)
		}
	}
	for _, line := range slices.Concat(p.Gets, p.Commands) {
		w.Printf("%s\n", plaintext.Line(line))
	}
	w.Printf("\n")
	w.Values("first", p.First.Role+": "+term.FirstLine(p.First.Prompt, 100), "directory", p.First.Cwd,
		"limits", view.LimitsText(p.Limits))
	if p.First.Problem != "" {
		w.Printf("problem: %s\n", plaintext.Line(string(p.First.Problem)))
		for _, h := range p.First.Hints {
			w.Printf("hint: %s\n", plaintext.Line(h))
		}
	}
	printed := map[string]bool{}
	for _, r := range p.Roles {
		if r.Problem == "" || printed[string(r.Problem)] {
			continue
		}
		printed[string(r.Problem)] = true
		w.Printf("problem: role %s: %s\n", plaintext.Line(r.Role), plaintext.Line(string(r.Problem)))
		for _, h := range r.Hints {
			w.Printf("hint: %s\n", plaintext.Line(h))
		}
	}
}

// limitFlags returns the flags that limit a whole run.
func limitFlags() []ucli.Flag {
	return []ucli.Flag{
		dollars(ucli.StringFlag{Name: "max-cost", Usage: "`DOLLARS` stop before the next step once the run has cost this much"}),
		term.Number(ucli.StringFlag{Name: "max-tokens", Usage: "`N` stop before the next step once the run has used this many tokens"}, 1, 200000),
		term.Span(ucli.StringFlag{Name: "max-time", Usage: "`DURATION` stop before the next step once all steps together took this long"}),
	}
}

// moreFlags returns the flags that raise a run's limits.
func moreFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.BoolFlag{Name: "raise-limit", Usage: "raise the limit that was reached by its original amount"},
		dollars(ucli.StringFlag{Name: "add-cost", Usage: "`DOLLARS` raise the cost limit"}),
		term.Number(ucli.StringFlag{Name: "add-tokens", Usage: "`N` raise the token limit"}, 1, 200000),
		term.Span(ucli.StringFlag{Name: "add-time", Usage: "`DURATION` raise the time limit, such as 30m"}),
	}
}

// limitsOf reads the flags of [limitFlags]; zero means not set.
func limitsOf(c *ucli.Context) protocol.Limits {
	return protocol.Limits{
		MaxCostUSD: dollarsOf(c, "max-cost"), MaxTokens: int64(term.NumberOf(c, "max-tokens")),
		MaxTimeMs: term.SpanOf(c, "max-time").Milliseconds(),
	}
}

// moreOf reads the flags of [moreFlags].
func moreOf(c *ucli.Context) engine.More {
	return engine.More{Again: c.Bool("raise-limit"), Amount: protocol.Amount{CostUSD: dollarsOf(c, "add-cost"),
		Tokens: int64(term.NumberOf(c, "add-tokens")), TimeMs: term.SpanOf(c, "add-time").Milliseconds()}}
}

// dollars returns a flag for an amount of money.
func dollars(f ucli.StringFlag) ucli.Flag {
	return term.Checked(f, func(name, text string) error {
		if _, ok := amount(text); !ok {
			return cmdline.UsageError(fmt.Sprintf("--%s must be an amount in dollars above 0, got %q", name, text), "--"+name+" 5")
		}
		return nil
	})
}

func dollarsOf(c *ucli.Context, name string) float64 {
	usd, _ := amount(c.String(name)) // validated when the flag was parsed
	return usd
}

// amount parses an amount of money.
func amount(text string) (float64, bool) {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(text), "$"), 64)
	return usd, err == nil && usd > 0 && usd <= protocol.MaxCostUSD
}

// checkBudget rejects a cost limit for a thread whose costs would be unknown.
func checkBudget(ctx context.Context, e *engine.Engine, s protocol.Start, l protocol.Limits, o engine.StepOptions) error {
	w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, s.Workflow)
	if err != nil {
		return err
	}
	return e.CheckBudget(ctx, w, l, o)
}

// grant sets and raises limits of a thread according to the flags, and prints the result.
func (a Commands) grant(ctx context.Context, c *ucli.Context) error {
	l, m := limitsOf(c), moreOf(c)
	if l == (protocol.Limits{}) && m == (engine.More{}) {
		return nil
	}
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	lines, err := e.Grant(ctx, id, l, m)
	for _, line := range lines {
		a.Messagef("thread %s: %s", id, line)
	}
	return err
}

// doAsking is like [engine.Engine.DoTrusting], but when a run stops at a limit, it asks at the terminal
// whether to raise it, and continues.
func (a Commands) doAsking(ctx context.Context, e *engine.Engine, id string, w engine.Work) ([]protocol.StepOutput, error) {
	results, err := e.DoTrusting(ctx, id, w, a.AskTrust)
	for w.Steps == engine.UntilEnd && terminal.Is(a.Env.Stdin) && terminal.Is(a.Env.Stderr) {
		why := strings.TrimPrefix(budgetReached(results, err), "thread "+id+": ")
		if why == "" {
			break
		}
		more, asked := a.askMore(ctx, id, why)
		if asked != nil || more == (engine.More{}) {
			break // the limit is reported as usual
		}
		lines, failed := e.Grant(ctx, id, protocol.Limits{}, more)
		if failed != nil {
			return results, failed
		}
		for _, line := range lines {
			a.Messagef("thread %s: %s", id, line)
		}
		at, failed := e.Reader.Show(ctx, id)
		if failed != nil {
			return results, failed
		}
		w.Do, w.Prompt, w.Answer, w.Cwd, w.Expect, w.Fresh, w.KeepFiles = engine.DoStep, "", nil, "", "", false, false
		if at.Status == protocol.StatusSuspended {
			w.Do = engine.DoResume
		}
		var made []protocol.StepOutput
		made, err = e.DoTrusting(ctx, id, w, a.AskTrust)
		results = append(results, made...)
	}
	return results, err
}

// budgetReached describes the limit that a run has reached, or returns "".
func budgetReached(results []protocol.StepOutput, err error) string {
	switch {
	case err != nil && app.Classify(err).Code == protocol.CodeLimit:
		return err.Error()
	case err != nil || len(results) == 0:
		return ""
	}
	if at := results[len(results)-1]; at.Error != nil && at.Error.Code == protocol.CodeLimit && at.Status == protocol.StatusSuspended {
		return at.Error.Message
	}
	return ""
}

// askMore asks whether to double a run's limit.
func (a Commands) askMore(ctx context.Context, id, why string) (engine.More, error) {
	term.PaintLine(a.Env.Stderr, a.Colour(a.Env.Stderr, terminal.Yellow), plaintext.Indent("? thread "+id+": "+why))
	yes, err := a.AskYes(ctx, "Grant the same amount again and continue?")
	return engine.More{Again: yes}, err
}
