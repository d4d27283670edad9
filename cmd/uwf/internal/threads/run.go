package threads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/dryrun"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

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
		w.Do, w.Prompt, w.Answer, w.Cwd = engine.DoStep, "", nil, ""
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
