package threads

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/transcript"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) threadShowCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "show", ArgsUsage: "<thread>", Usage: "show the status and the next step of a thread",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "full", Usage: "include all steps"},
			remoteFlag("`REMOTE` show it as it is on this remote, without pulling"),
		},
	}, a.threadShow)
}

func (a Commands) threadShow(ctx context.Context, c *ucli.Context) error {
	id, e, done, err := a.threadSeen(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	show, err := view.Thread(ctx, e, id, c.Bool("full"))
	if err != nil {
		return err
	}
	if a.Bundle != nil { // a bundle is read-only
		show.Hint = protocol.NullString("to import it: uwf thread import " + plaintext.Word(a.Bundle.Path))
		if err := a.HintNames(ctx); err != nil {
			return err
		}
	}
	if show.Status == protocol.StatusCorrupt {
		a.Status = protocol.CodeCorrupt
	}
	return a.Print(show, func(w *term.Page) { a.showText(ctx, w, e, show) })
}

func (a Commands) showText(ctx context.Context, w *term.Page, e *engine.Engine, s protocol.ThreadShow) {
	name := s.WorkflowName
	if name != "" && s.Workflow != "" {
		name += " (" + string(s.Workflow) + ")"
	}
	lines := []string{
		"thread", s.Thread,
		"title", app.TitleText(s.Title, s.ForkedFrom),
		"workflow", name,
	}
	lines = append(lines, statusLines(s.StepOutput)...)
	lines = append(lines, "head", string(s.Head))
	now := a.Env.Now()
	lines = append(lines, "started", app.TimeText(s.StartedAt, now))
	if t, err := a.OpenThread(ctx, s.Head); err == nil {
		task := term.FirstLine(t.Task(), 100)
		lines = append(lines, "steps", stepsText(t, now), "task", task, "directory", directoryText(s, t))
	}
	for _, role := range slices.Sorted(maps.Keys(s.Agents)) {
		lines = append(lines, "--agent", plaintext.Line(role+"="+s.Agents[role]))
	}
	if s.Changes != nil {
		lines = append(lines, "files", view.Changes(*s.Changes)+" in all")
	}
	if len(s.Left) > 0 {
		lines = append(lines, "left out", worktree.Abbreviate(s.Left))
	}
	if s.Artifacts != nil {
		lines = append(lines, "artifacts", view.Artifacts(*s.Artifacts)+" in "+plaintext.Line(s.Artifacts.Dir))
	}
	if sum := s.Totals; sum != nil && sum.Steps+sum.FailedTries > 0 {
		lines = append(lines, "time", render.Duration(sum.DurationMs)+" in the steps", "tokens", view.Tokens(*sum), "cost", view.Cost(*sum))
	}
	const most = 30
	shown := s.Children
	if len(shown) > most {
		lines = append(lines, "children", fmt.Sprintf("%d: %s", len(shown), app.ChildrenText(shown)))
		shown = view.ByUrgency(shown)[:most]
	}
	for _, child := range shown {
		lines = append(lines, "child", term.Joined(plaintext.Line(child.Key)+"  "+string(child.Status), cmp.Or(plaintext.Line(child.Label), promptStart(ctx, e, child))))
	}
	if left := len(s.Children) - len(shown); left > 0 {
		lines = append(lines, "", fmt.Sprintf("… and %d more: uwf thread show %s --format json", left, s.Thread))
	}
	if s.Hint != "" {
		for hint := range strings.SplitSeq(string(s.Hint), "\n") {
			lines = append(lines, "hint", hint)
		}
	}
	w.Values(lines...)
	if s.Steps == nil {
		return
	}
	w.Printf("\n")
	stepsTable(w, s.Steps)
}

// promptStart returns the beginning of a child's prompt.
func promptStart(ctx context.Context, e *engine.Engine, child protocol.ChildOutput) string {
	head, err := e.Reader.Head(ctx, child.Thread)
	if err != nil {
		return ""
	}
	t, err := thread.Open(ctx, e.Reader.Store, head)
	if err != nil {
		return ""
	}
	return term.FirstLine(t.Task(), 60)
}

// statusLines describes a thread's state; the reason of a failure may take several lines.
func statusLines(s protocol.StepOutput) []string {
	const most = 12
	if s.Error == nil || s.Status != protocol.StatusError && s.Status != protocol.StatusCorrupt {
		text := app.StatusText(s)
		if s.Status == protocol.StatusIdle {
			text = string(s.Status) + ", " + text
		}
		lines := []string{"status", text}
		if s.Status.AtEnd() && s.Message != "" {
			lines = append(lines, "result", term.FirstLine(s.Message, 100))
		}
		return lines
	}
	var lines []string
	key, before := "status", string(s.Status)+": "
	for line := range strings.Lines(strings.TrimSpace(s.Error.Message)) {
		if len(lines) == 2*most {
			return append(lines, "", "…")
		}
		lines = append(lines, key, before+strings.TrimRight(line, "\r\n"))
		key, before = "", ""
	}
	return lines
}

// directoryText describes where the thread works and how its files are kept.
func directoryText(s protocol.ThreadShow, t *thread.Thread) string {
	w := s.Workspace
	if w == nil {
		return t.Start.Cwd + ", without snapshots"
	}
	text := w.Root
	if w.Mode == worktree.InWorktree {
		text += ", in its own worktree"
	}
	if w.Branch != "" {
		text += ", branch " + w.Branch
	}
	return text
}

// stepsText describes the number of steps and the time of the last one.
func stepsText(t *thread.Thread, now time.Time) string {
	text := fmt.Sprint(t.Len())
	if t.Last != nil && t.Last.CompletedAtMs > 0 {
		text += ", the last " + app.TimeText(&t.Last.CompletedAtMs, now)
	}
	return text
}

// History returns the command uwf thread steps.
func (a Commands) History() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "steps", ArgsUsage: "<thread>", Usage: "list the steps of a thread",
	}, a.threadSteps)
}

func (a Commands) threadSteps(ctx context.Context, _ *ucli.Context, e *engine.Engine, id string) error {
	head, err := e.Reader.Head(ctx, id)
	if err != nil {
		return err
	}
	steps, err := view.History(ctx, e, head)
	if err != nil {
		return err
	}
	out := protocol.ThreadSteps{Thread: id, Steps: steps}
	if start, ok := steps[0].(protocol.StartEntry); ok {
		out.Workflow = start.Workflow
	}
	return a.Print(out, func(w *term.Page) { stepsTable(w, steps) })
}

// stepsTable prints a history as a table.
func stepsTable(w *term.Page, entries []any) {
	if len(entries) == 1 { // only the start
		w.Printf("no steps yet\n")
		return
	}
	kept := slices.ContainsFunc(entries, func(e any) bool {
		s, ok := e.(protocol.StepEntry)
		return ok && s.Changes != nil
	})
	columns := []string{"#", "ROLE", "STATUS", "AGENT", "TIME", "TOKENS", "STEP"}
	if kept {
		columns = slices.Insert(columns, 6, "FILES")
	}
	t := term.NewTable(columns...)
	for _, e := range entries {
		s, ok := e.(protocol.StepEntry)
		if !ok {
			continue
		}
		cells := []string{fmt.Sprint(s.Index + 1), s.Role, view.StatusOf(s.Output), s.Agent, render.Duration(s.DurationMs), view.StepTokens(s.Usage), string(s.Hash)}
		if kept {
			changed := ""
			if s.Changes != nil {
				changed = view.Changes(*s.Changes)
			}
			cells = slices.Insert(cells, 6, changed)
		}
		t.Row(cells...)
	}
	w.Table(t)
}

func (a Commands) threadListCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list threads, newest first",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "all", Usage: "include ended threads"},
			&ucli.StringFlag{Name: "status", Usage: "`LIST` comma-separated statuses to show; active means all that uwf can continue"},
			&ucli.StringFlag{Name: "after", Usage: "`TIME` only threads started after then: a date, or an age such as 7d or 24h"},
			&ucli.StringFlag{Name: "before", Usage: "`TIME` only threads started before then"},
			term.Number(ucli.StringFlag{Name: "limit", Aliases: []string{"take"}, Usage: "`N` maximum number of results"}, 0, 20),
			term.Number(ucli.StringFlag{Name: "offset", Aliases: []string{"skip"}, Usage: "`N` number of results to skip", Value: "0"}, 0, 20),
			remoteFlag("`REMOTE` list the threads on this remote"),
		},
	}, a.threadList)
}

func (a Commands) listFilter(c *ucli.Context) (view.Filter, error) {
	f := view.Filter{Ended: c.Bool("all"), Limit: term.NumberOf(c, "limit"), Offset: term.NumberOf(c, "offset")}
	if c.IsSet("limit") && f.Limit == 0 {
		f.Limit = -1 // not just one page
	}
	var err error
	if f.Statuses, err = statusList(c.String("status")); err != nil {
		return f, err
	}
	now := a.Env.Now()
	for _, bound := range []struct {
		flag string
		into *time.Time
	}{{"after", &f.After}, {"before", &f.Before}} {
		if !c.IsSet(bound.flag) {
			continue
		}
		if *bound.into, err = term.ParseTime(c.String(bound.flag), now, now.Location()); err != nil {
			return f, err
		}
	}
	return f, nil
}

// statusList parses --status. "active" means everything that can be stepped, and "end" is the original's
// later word for completed.
func statusList(s string) ([]protocol.Status, error) {
	if s == "" {
		return nil, nil
	}
	known := Statuses()
	var list []protocol.Status
	for _, word := range strings.Split(s, ",") {
		switch st := protocol.Status(strings.TrimSpace(word)); {
		case st == "active":
			list = append(list, protocol.StatusIdle, protocol.StatusRunning, protocol.StatusError, protocol.StatusWaitingForChildren, protocol.StatusRateLimited)
		case st == "end":
			list = append(list, protocol.StatusCompleted, protocol.StatusFailed)
		case slices.Contains(known, string(st)):
			list = append(list, st)
		default:
			return nil, cmdline.UsageError(fmt.Sprintf("invalid status %q", word), cmdline.Choices("--status ", word, append(known, "active", "end"))...)
		}
	}
	return list, nil
}

// Statuses returns all thread statuses.
func Statuses() []string {
	var names []string
	for _, s := range protocol.Statuses() {
		names = append(names, string(s))
	}
	return names
}

func (a Commands) threadList(ctx context.Context, c *ucli.Context) error {
	f, err := a.listFilter(c)
	if err != nil {
		return err
	}
	if c.IsSet("remote") {
		return a.listAt(ctx, c.String("remote"), f)
	}
	list, text := a.list, listText
	if slices.Equal(f.Statuses, []protocol.Status{protocol.StatusRunning}) {
		list, text = a.running, runningText
	}
	items, err := list(ctx, f)
	if err != nil {
		return err
	}
	some := false
	counted := func(yield func(protocol.ThreadItem) bool) {
		for item := range items {
			some = true
			if !yield(item) {
				return
			}
		}
	}
	err = render.PrintList(ctx, a.Env.Stdout, a.Format(nil), counted, a.Page(func(w *term.Page) { text(w, counted, a.Env.Now()) }))
	if err == nil && f.Statuses == nil && !f.Ended && f.Limit >= 0 && f.Offset == 0 && a.Format(nil) == render.Text {
		return a.printEnded(ctx, f, some)
	}
	return err
}

// printEnded prints how many ended threads are not listed.
func (a Commands) printEnded(ctx context.Context, f view.Filter, some bool) error {
	x, err := a.Index()
	if err != nil {
		return err
	}
	switch ended := view.Ended(ctx, x, f); {
	case ended > 0:
		a.Hint("%s: uwf thread list --all", render.Count(ended, "ended thread"))
	case !some:
		a.Hint("uwf run <workflow> -p '<task>'")
	}
	return nil
}

// list returns the requested page. It is a single-use iterator that reads on demand and stops when ctx is
// cancelled.
func (a Commands) list(ctx context.Context, f view.Filter) (iter.Seq[protocol.ThreadItem], error) {
	x, err := a.Index()
	if err != nil {
		return nil, err
	}
	entries := view.Listed(ctx, x, f, func(err error) {
		a.Messagef("uwf: %v", err) // one damaged line must not hide the other threads
		a.Status = app.Classify(err).Code
	})
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	if len(entries) > manyThreads {
		// The list of threads is live data; everything else read is garbage.
		debug.SetGCPercent(100)
	}
	if f.Limit > 0 && f.Statuses == nil { // few are read
		return view.Items(ctx, e, entries, f), nil
	}
	f.Known = view.SavedSummaries(e)
	return func(yield func(protocol.ThreadItem) bool) {
		defer f.Known.Save(e)
		for item := range view.Items(ctx, e, entries, f) {
			if !yield(item) {
				return
			}
		}
	}, nil
}

// manyThreads is the number of threads from which memory matters more than time.
const manyThreads = 10_000

// rowsAtOnce bounds the rows that are aligned together, so that long lists need not fit in memory.
const rowsAtOnce = 1000

func listText(w *term.Page, items iter.Seq[protocol.ThreadItem], now time.Time) {
	t, some := term.NewTable("THREAD", "STATUS", "WORKFLOW", "NEXT", "STARTED", "COST", "TITLE"), false
	for it := range items {
		name := string(it.Workflow)
		if it.WorkflowName != "" {
			name = string(it.WorkflowName)
		}
		next := ""
		if role := cmp.Or(it.CurrentRole, it.SuspendedRole); role != "" {
			next = string(role)
		}
		id, cost := it.Thread, ""
		if !it.Imported {
			id = names.Short(id)
		}
		if sum := it.Totals; sum != nil && sum.Usage != nil {
			cost = term.Dollars(sum.Usage, sum.StepsWithoutCost)
		}
		t.Row(id, string(it.Status), name, next, app.TimeText(it.StartedAt, now), cost, app.TitleText(it.Title, it.ForkedFrom))
		if some = true; len(t.Rows) == rowsAtOnce {
			if w.Table(t); w.Err() != nil {
				return
			}
		}
	}
	if !some {
		w.Printf("no active threads\n")
		return
	}
	w.Table(t)
}

func (a Commands) threadReadCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "read", ArgsUsage: "<thread>", Usage: "read a whole thread as Markdown",
		Flags: []ucli.Flag{
			app.QuotaFlag(),
			&ucli.BoolFlag{Name: "all", Usage: "print everything, even into a pipe", Action: cmdline.Excludes[bool]("all", "quota")},
			&ucli.StringFlag{Name: "before", Usage: "`STEP` only steps before this one: a number, role, role@visit or hash"},
			&ucli.BoolFlag{Name: "start", Usage: "include the task, even with --before"},
			&ucli.BoolFlag{
				Name: "live", Usage: "include the turns of the running step or of the failed attempt",
				Action: cmdline.Excludes[bool]("live", "before", "the running step comes after all steps"),
			},
		},
	}, a.threadRead)
}

func (a Commands) threadRead(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	quota := term.NumberOf(c, "quota")
	if c.Bool("all") || !c.IsSet("quota") && a.OnTerminal() {
		quota = math.MaxInt32
	}
	var err error
	var flight *status.Flight
	if c.Bool("live") {
		if flight, err = e.Reader.Flight(ctx, id); err != nil {
			return err
		}
		if flight == nil {
			if flight, err = e.Reader.Tried(ctx, id); err != nil {
				return err
			}
		}
	}
	r, err := a.Reader(ctx, e, id, flight)
	if err != nil {
		return err
	}
	r.Quota = quota - 1 // leaves room for the final line break
	q := transcript.Request{Start: !c.IsSet("before") || c.Bool("start")}
	if !c.IsSet("before") && flight == nil {
		if at, err := e.Reader.Show(ctx, id); err == nil { // on an error, show what is readable
			q.Ending = transcript.EndingOf(at)
		}
	}
	if c.IsSet("before") {
		step, err := a.AddressIn(ctx, id, c.String("before"))
		if err != nil {
			return err
		}
		before, err := names.Before(ctx, r.Thread, id, step)
		if err != nil {
			return err
		}
		if r.Thread, err = a.OpenThread(ctx, before); err != nil {
			return err
		}
	}
	if flight != nil {
		if q.Newest, err = r.FlightBlock(ctx, *flight, a.Env.Now()); err != nil {
			return err
		}
	}
	text, err := r.Read(ctx, q)
	if err != nil {
		return err
	}
	if f := a.Flags.Format; f != "" && f != string(render.Text) { // only if requested, because the default is Markdown everywhere
		return a.Print(protocol.ThreadText{Thread: id, Markdown: text}, nil)
	}
	_, err = io.WriteString(a.Env.Stdout, text+"\n")
	return err
}

// threadGraphOutput is the JSON result of thread graph: the graph with the state of the run, and the path
// taken.
type threadGraphOutput struct {
	Thread string                `json:"thread"`
	Status protocol.Status       `json:"status"`
	Path   []string              `json:"path"`  // the nodes, from $START
	Roles  []protocol.RoleTotals `json:"roles"` // in the order of the graph
	diagram.Graph
}

func (a Commands) threadGraphCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "graph", ArgsUsage: "<thread>", Usage: "draw the path of a thread through its workflow",
		Flags: []ucli.Flag{a.FormatFlag(workflows.GraphFormats(), "text")},
	}, a.threadGraph)
}

func (a Commands) threadGraph(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	trace, err := view.TraceOf(ctx, e, id)
	if err != nil {
		return err
	}
	g := trace.Graph(view.Note)
	out := threadGraphOutput{Thread: id, Status: trace.Status, Path: trace.Path(), Roles: trace.Roles(), Graph: g}
	return workflows.Commands{App: a.App}.Draw(ctx, out, g, a.OwnFormat(c), term.OfGraph)
}
