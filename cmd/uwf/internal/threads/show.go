package threads

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) threadShowCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "show", ArgsUsage: "<thread>", Usage: "show where a thread stands and what is next",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "full", Usage: "include all steps"},
			remoteFlag("as it stands at this `REMOTE`; nothing is brought here"),
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
	if a.Bundle != nil { // where nobody can go on
		show.Hint = app.Ref("Import it with: uwf thread import " + plaintext.Word(a.Bundle.Path))
		if err := a.HintNames(ctx); err != nil {
			return err
		}
	}
	if show.Status == protocol.StatusCorrupt {
		a.Status = protocol.CodeCorrupt
	}
	return a.Print(show, func(w io.Writer) error { return a.showText(ctx, w, e, show) })
}

func (a Commands) showText(ctx context.Context, w io.Writer, e *engine.Engine, s protocol.ThreadShow) error {
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
	lines = append(lines, "started", app.Started(s.StartedAt, now))
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
		lines = append(lines, "not kept", workspace.Some(s.Left))
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
		lines = append(lines, "child", term.Joined(plaintext.Line(child.Key)+"  "+string(child.Status), cmp.Or(plaintext.Line(child.Label), toldTo(ctx, e, child))))
	}
	if left := len(s.Children) - len(shown); left > 0 {
		lines = append(lines, "", fmt.Sprintf("… and %d more: uwf thread show %s --format json", left, s.Thread))
	}
	if s.Hint != nil {
		for hint := range strings.SplitSeq(*s.Hint, "\n") {
			lines = append(lines, "hint", hint)
		}
	}
	if err := term.TextLines(w, lines...); err != nil {
		return err
	}
	if s.Steps == nil {
		return nil
	}
	fmt.Fprintln(w)
	return stepsTable(w, s.Steps)
}

// toldTo is the beginning of what a child was told.
func toldTo(ctx context.Context, e *engine.Engine, child protocol.ChildOutput) string {
	head, err := e.Head(ctx, child.Thread)
	if err != nil {
		return ""
	}
	t, err := thread.Open(ctx, e.Store, head)
	if err != nil {
		return ""
	}
	return term.FirstLine(t.Task(), 60)
}

// statusLines say where a thread stands; why it has failed may take more than one.
func statusLines(s protocol.StepOutput) []string {
	const most = 12
	if s.Error == nil || s.Status != protocol.StatusError && s.Status != protocol.StatusCorrupt {
		return []string{"status", app.StatusText(s)}
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

// directoryText says where the thread works, and what becomes of the files there.
func directoryText(s protocol.ThreadShow, t *thread.Thread) string {
	w := s.Workspace
	if w == nil {
		return t.Start.Cwd + ", files are not kept"
	}
	text := w.Root
	if w.Mode == workspace.InWorktree {
		text += ", a worktree of its own"
	}
	if w.Branch != "" {
		text += ", branch " + w.Branch
	}
	return text
}

// stepsText says how many steps there are, and when the last one was done.
func stepsText(t *thread.Thread, now time.Time) string {
	text := fmt.Sprint(t.Len())
	if t.Last != nil && t.Last.CompletedAtMs > 0 {
		text += ", the last " + app.Started(&t.Last.CompletedAtMs, now)
	}
	return text
}

// History is uwf thread steps.
func (a Commands) History() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "steps", ArgsUsage: "<thread>", Usage: "list the steps of a thread, oldest first",
	}, a.threadSteps)
}

func (a Commands) threadSteps(ctx context.Context, c *ucli.Context) error {
	id, head, err := a.ThreadHead(ctx, c)
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, nil)
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
	return a.Print(out, func(w io.Writer) error { return stepsTable(w, steps) })
}

// stepsTable is a table of a history.
func stepsTable(w io.Writer, entries []any) error {
	if len(entries) == 1 { // the start
		_, err := fmt.Fprintln(w, "no steps yet")
		return err
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
	return t.Print(w)
}
