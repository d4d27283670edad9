package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

func (a *app) threadShowCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "show", ArgsUsage: "<thread>", Usage: "show where a thread stands and what is next",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "full", Usage: "include all steps"}},
	}, a.threadShow)
}

func (a *app) threadShow(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	state, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	show := protocol.ThreadShow{StepOutput: state, Hint: ref(a.nextStep(state))}
	if at, err := threadid.Time(id); err == nil {
		ms := at.UnixMilli()
		show.StartedAt = &ms
	}
	if sum, err := e.Totals(ctx, id, state.Head); err == nil {
		show.Totals = &sum
	}
	if c.Bool("full") {
		steps, err := a.history(ctx, state.Head)
		if err != nil {
			return err
		}
		show.Steps = steps
	}
	if state.Status == protocol.StatusCorrupt {
		a.status = protocol.CodeCorrupt
	}
	return a.print(show, func(w io.Writer) error { return a.showText(ctx, w, show) })
}

// nextStep is hintFor, unless the thread is in a bundle, where nobody can go on.
func (a *app) nextStep(s protocol.StepOutput) string {
	if a.bundle != nil {
		return "Import it with: uwf thread import " + a.bundle.path
	}
	return hintFor(s)
}

// hintFor is the command that a thread waits for.
func hintFor(s protocol.StepOutput) string {
	switch {
	case s.Pending:
		return "An interrupted step left its result. Use it with: uwf thread step " + s.Thread
	case s.Error != nil && s.Error.Hint != "":
		return s.Error.Hint
	}
	switch s.Status {
	case protocol.StatusSuspended:
		return "The thread is suspended. Resume with: uwf thread resume " + s.Thread
	case protocol.StatusFailed:
		return "The last try failed. Retry with: uwf thread step " + s.Thread
	case protocol.StatusRunning:
		return "A step is running. Wait with: uwf thread wait " + s.Thread
	case protocol.StatusIdle:
		return "Next: uwf thread step " + s.Thread
	case protocol.StatusCompleted:
		return "Read it with: uwf thread read " + s.Thread
	}
	return ""
}

func (a *app) showText(ctx context.Context, w io.Writer, s protocol.ThreadShow) error {
	name := s.WorkflowName
	if name != "" && s.Workflow != "" {
		name += " (" + string(s.Workflow) + ")"
	}
	lines := []string{
		"thread", s.Thread,
		"workflow", name,
		"status", statusText(s.StepOutput),
		"head", string(s.Head),
	}
	now := a.env.Now()
	lines = append(lines, "started", started(s.StartedAt, now))
	if t, err := a.openThread(ctx, s.Head); err == nil {
		lines = append(lines, "steps", stepsText(t, now), "task", firstLine(t.Start.Prompt, 100), "directory", t.Start.Cwd)
	}
	if sum := s.Totals; sum != nil && sum.Steps > 0 {
		lines = append(lines, "time", duration(sum.DurationMs)+" in the steps", "tokens", totalTokens(*sum), "cost", totalCost(*sum))
	}
	if s.Hint != nil {
		for hint := range strings.SplitSeq(*s.Hint, "\n") {
			lines = append(lines, "hint", hint)
		}
	}
	if err := textLines(w, lines...); err != nil {
		return err
	}
	if s.Steps == nil {
		return nil
	}
	fmt.Fprintln(w)
	return stepsTable(w, s.Steps)
}

// stepsText says how many steps there are, and when the last one was done.
func stepsText(t *thread.Thread, now time.Time) string {
	text := fmt.Sprint(t.Len())
	if t.Last != nil && t.Last.CompletedAtMs > 0 {
		text += ", the last " + started(&t.Last.CompletedAtMs, now)
	}
	return text
}

func (a *app) threadStepsCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "steps", ArgsUsage: "<thread>", Usage: "list the steps of a thread, oldest first",
	}, a.threadSteps)
}

func (a *app) threadSteps(ctx context.Context, c *ucli.Context) error {
	id, head, err := a.threadHead(ctx, c)
	if err != nil {
		return err
	}
	steps, err := a.history(ctx, head)
	if err != nil {
		return err
	}
	out := protocol.ThreadSteps{Thread: id, Steps: steps}
	if start, ok := steps[0].(protocol.StartEntry); ok {
		out.Workflow = start.Workflow
	}
	return a.print(out, func(w io.Writer) error { return stepsTable(w, steps) })
}

// history is the start entry and the steps of a chain, oldest first.
func (a *app) history(ctx context.Context, head protocol.Hash) ([]any, error) {
	t, err := a.openThread(ctx, head)
	if err != nil {
		return nil, err
	}
	s, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	start, err := s.Get(ctx, t.StartHash)
	if err != nil {
		return nil, err
	}
	entries := make([]any, t.Len()+1)
	entries[0] = protocol.StartEntry{
		Hash: t.StartHash, Workflow: t.Start.Workflow, Prompt: t.Start.Prompt, Timestamp: start.Timestamp,
	}
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		out, err := t.Shown(ctx, step)
		if err != nil {
			return nil, err
		}
		if step.SessionID, err = t.SessionID(ctx, step); err != nil {
			return nil, err
		}
		entries[step.Index+1] = stepEntry(step, out)
	}
	return entries, nil
}

func stepEntry(s thread.Step, out thread.Output) protocol.StepEntry {
	return protocol.StepEntry{
		Hash: s.Hash, Role: s.Role, Output: out.Value, Detail: s.Detail, Agent: s.Agent,
		Timestamp: s.Timestamp, DurationMs: s.CompletedAtMs - s.StartedAtMs, Usage: s.Usage,
		SessionID: s.SessionID, Index: s.Index,
	}
}

func (a *app) openThread(ctx context.Context, head protocol.Hash) (*thread.Thread, error) {
	s, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	return thread.Open(ctx, s, head)
}

// stepsTable is a table of a history.
func stepsTable(w io.Writer, entries []any) error {
	if len(entries) == 1 { // the start
		_, err := fmt.Fprintln(w, "no steps yet")
		return err
	}
	t := newTable("#", "ROLE", "STATUS", "AGENT", "TIME", "TOKENS", "STEP")
	for _, e := range entries {
		s, ok := e.(protocol.StepEntry)
		if !ok {
			continue
		}
		t.row(fmt.Sprint(s.Index+1), s.Role, statusOf(s.Output), s.Agent, duration(s.DurationMs), tokens(s.Usage), string(s.Hash))
	}
	return t.print(w)
}

// statusOf is the field that routed, for a table.
func statusOf(output any) string {
	m, ok := output.(map[string]any)
	if !ok {
		return ""
	}
	if _, gone := m["$redacted"]; gone {
		return "[redacted]"
	}
	for _, key := range []string{protocol.StatusKey, "status"} {
		if s, ok := m[key].(string); ok {
			return s
		}
	}
	return ""
}

// duration is a time for people: 999ms, 1.5s, 1m02s.
func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case ms < 1000:
		return fmt.Sprintf("%dms", max(ms, 0))
	case ms < 60_000:
		return fmt.Sprintf("%.1fs", float64(ms/100)/10)
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
}

// tokens is what a step cost; unknown is shown as unknown.
func tokens(u *protocol.Usage) string {
	if !u.Counted() {
		return "?"
	}
	return fmt.Sprintf("%d in, %d out", u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, u.OutputTokens)
}
