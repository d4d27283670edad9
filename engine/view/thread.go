package view

import (
	"context"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Thread returns where a thread stands, what is to be done next and what it has cost;
// steps: with its history.
func Thread(ctx context.Context, e *engine.Engine, id string, steps bool) (protocol.ThreadShow, error) {
	state, err := e.Show(ctx, id)
	show := protocol.ThreadShow{StepOutput: state}
	if err != nil {
		return show, err
	}
	if next := Next(state); next != "" {
		show.Hint = &next
	}
	task := ""
	if t, err := thread.Open(ctx, e.Store, state.Head); err == nil {
		task = protocol.TitleOf(t.Task())
		if t.Last != nil && t.Last.Files != nil {
			show.Left = t.Last.Files.Left
		}
	}
	facts, _ := e.Heads.Facts(ctx, id) // without them it is called as its task
	show.Title, show.ForkedFrom = named(task, facts)
	show.Agents, _ = e.ChosenAgents(ctx, facts)
	if at, err := threadid.Time(id); err == nil {
		ms := at.UnixMilli()
		show.StartedAt = &ms
	}
	if sum, err := e.Totals(ctx, id, state.Head); err == nil {
		show.Totals = &sum
	}
	if len(show.Children) == 0 && show.Error == nil {
		show.Children, _ = e.Joined(ctx, id, state.Head) // what cannot be read is no child to show
	}
	if w := facts.Workspace; w != nil && w.Mode != workspace.AsItIs {
		show.Workspace = &protocol.ThreadWorkspace{Mode: workspace.Word(w.Mode), Root: w.Root, Branch: w.Branch}
	}
	totals := e.Files().Totals(ctx, state.Head, workspace.MostTotals)
	if all, ok := totals[""]; ok {
		show.Changes = &all
	}
	if steps {
		show.Steps, err = history(ctx, e.Store, state.Head, totals)
	}
	return show, err
}

// Next is what a person would do now: the command that a thread waits for, as a
// sentence. "" if it waits for none.
func Next(s protocol.StepOutput) string {
	switch {
	case s.Pending:
		return "An interrupted step left its result. Use it with: uwf thread step " + s.Thread
	case s.Error != nil && s.Error.Hint != "":
		return s.Error.Hint
	}
	switch s.Status {
	case protocol.StatusSuspended:
		if s.Question != nil && s.Question.Schema != nil {
			return "The thread waits for a person. Answer with: uwf thread answer " + s.Thread
		}
		return "The thread is suspended. Resume with: uwf thread resume " + s.Thread
	case protocol.StatusError:
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

// History returns the start entry and the steps of a chain, oldest first: a
// [protocol.StartEntry], then [protocol.StepEntry]s.
func History(ctx context.Context, e *engine.Engine, head protocol.Hash) ([]any, error) {
	return history(ctx, e.Store, head, e.Files().Totals(ctx, head, workspace.MostTotals))
}

func history(ctx context.Context, s cas.Store, head protocol.Hash, totals map[protocol.Hash]protocol.FileTotals) ([]any, error) {
	t, err := thread.Open(ctx, s, head)
	if err != nil {
		return nil, err
	}
	start, err := s.Get(ctx, t.StartHash)
	if err != nil {
		return nil, err
	}
	entries := make([]any, t.Len()+1)
	entries[0] = protocol.StartEntry{
		Hash: t.StartHash, Workflow: t.Start.Workflow, Prompt: t.Start.Prompt, Timestamp: start.Timestamp, Inputs: t.Start.Inputs,
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
		entry := stepEntry(step, out)
		if sum, ok := totals[step.Hash]; ok {
			entry.Changes = &sum
		}
		entries[step.Index+1] = entry
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

// StatusOf is the status by which an output was routed; "" if it has none.
func StatusOf(output any) string {
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
