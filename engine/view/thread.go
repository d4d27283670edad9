package view

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/threadid"
)

// Thread returns a thread's state, next action and cost; with steps set, also its history.
func Thread(ctx context.Context, e *engine.Engine, id string, steps bool) (protocol.ThreadShow, error) {
	state, err := e.Reader.Show(ctx, id)
	show := protocol.ThreadShow{StepOutput: state}
	if err != nil {
		return show, err
	}
	show.Hint = protocol.NullString(next(&e.Reader, state))
	task := ""
	if t, err := thread.Open(ctx, e.Reader.Store, state.Head); err == nil {
		task = protocol.TitleOf(t.Task())
		if t.Last != nil && t.Last.Files != nil {
			show.Left = t.Last.Files.Left
		}
	}
	facts, _ := e.Reader.Heads.Facts(ctx, id) // on failure, the title is the task
	show.Title, show.ForkedFrom = named(task, facts)
	show.Agents, _ = e.Reader.ChosenAgents(ctx, facts)
	if at, err := threadid.Time(id); err == nil {
		ms := at.UnixMilli()
		show.StartedAt = &ms
	}
	if sum, err := e.Reader.Totals(ctx, id, state.Head); err == nil {
		show.Totals = &sum
	}
	if len(show.Children) == 0 && show.Error == nil {
		show.Children, _ = e.Reader.Joined(ctx, id, state.Head) // omit unreadable children
	}
	if w := facts.Workspace; w != nil && w.Mode != worktree.ModeNone {
		show.Workspace = &protocol.ThreadWorkspace{Mode: worktree.ModeName(w.Mode), Root: w.Root, Branch: w.Branch}
	}
	show.Artifacts = artifacts(ctx, e, id)
	totals := e.Files().Totals(ctx, state.Head, worktree.MostTotals)
	if all, ok := totals[""]; ok {
		show.Changes = &all
	}
	if steps {
		show.Steps, err = history(ctx, e.Reader.Store, state.Head, totals)
	}
	return show, err
}

// artifacts counts the artifacts of a thread's run; nil if there are none or they cannot be counted.
func artifacts(ctx context.Context, e *engine.Engine, id string) *protocol.Artifacts {
	c, err := e.Reader.Config(ctx)
	root, none := heads.Root(ctx, e.Reader.Heads, id)
	if err != nil || none != nil {
		return nil
	}
	held, err := worktree.CountArtifacts(e.Reader.Dirs.Artifacts(root), config.MaxArtifacts(c))
	if err != nil || held.Files == 0 {
		return nil
	}
	return &held
}

// next returns the hint for the user's next action, or "".
func next(r *status.Reader, s protocol.StepOutput) string {
	if s.Error != nil && s.Error.Hint != "" && !s.Pending {
		return s.Error.Hint
	}
	return strings.Join(r.HintsFor(standing(s)), "\n")
}

// standing returns a thread's state as a reason.
func standing(s protocol.StepOutput) protocol.Reason {
	if s.Pending {
		return protocol.Why("at-pending-result", "thread", s.Thread)
	}
	switch s.Status {
	case protocol.StatusSuspended:
		switch {
		case s.Question == nil: // a limit of steps
			return protocol.Why("at-next-step", "thread", s.Thread)
		case s.Question.Schema != nil:
			return protocol.Why("at-form", "thread", s.Thread)
		}
		return protocol.Why("at-question", "thread", s.Thread)
	case protocol.StatusError:
		return protocol.Why("at-failed-try", "thread", s.Thread)
	case protocol.StatusRunning:
		return protocol.Why("at-running-step", "thread", s.Thread)
	case protocol.StatusIdle:
		return protocol.Why("at-next-step", "thread", s.Thread)
	case protocol.StatusCompleted, protocol.StatusFailed:
		return protocol.Why("at-end", "thread", s.Thread)
	}
	return protocol.Reason{}
}

// History returns the start entry and the steps of a chain, oldest first: a [protocol.StartEntry], then
// [protocol.StepEntry] values.
func History(ctx context.Context, e *engine.Engine, head protocol.Hash) ([]any, error) {
	return history(ctx, e.Reader.Store, head, e.Files().Totals(ctx, head, worktree.MostTotals))
}

func history(ctx context.Context, s cas.Store, head protocol.Hash,
	totals map[protocol.Hash]protocol.FileTotals) ([]any, error) {
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
		Hash: t.StartHash, Workflow: t.Start.Workflow, Prompt: t.Start.Prompt, Timestamp: start.Timestamp,
		Inputs: t.Start.Inputs,
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

// StatusOf returns the routing status of an output, or "" if it has none.
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

// stepTurns is a finished step with its turns, which [thread.ShownTurn] reads.
type stepTurns struct {
	Step   protocol.Hash
	Number int // starts at 1
	Role   string
	Turns  []protocol.Hash
	Gone   string // text shown in place of redacted turns; "" if none
}

// Turns yields the finished steps of a thread, oldest first. If role is not "", it yields only that role's.
func Turns(ctx context.Context, s cas.Store, t *thread.Thread, role string) iter.Seq2[stepTurns, error] {
	return func(yield func(stepTurns, error) bool) {
		var steps []thread.Step
		for step, err := range t.Steps(ctx) {
			if err != nil {
				yield(stepTurns{}, err)
				return
			}
			if role == "" || step.Role == role {
				steps = append(steps, step)
			}
		}
		for _, step := range slices.Backward(steps) {
			detail, err := thread.ShownDetail(ctx, s, step.Detail)
			out := stepTurns{Step: step.Hash, Number: step.Index + 1, Role: step.Role, Turns: detail.Turns}
			if detail.Capture == "" { // only a redacted detail lacks it
				out.Gone = detail.Outcome
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// liveTurn is a turn of a step in flight.
type liveTurn struct {
	Turn protocol.Hash
	Step *protocol.Hash // the finished step that contained it first; nil if it was announced
}

// Live yields each turn of a step in flight once, until the step has ended. Turns that were not announced are
// read from the finished step.
func Live(ctx context.Context, e *engine.Engine, id string, f *status.Flight) iter.Seq2[liveTurn, error] {
	return func(yield func(liveTurn, error) bool) {
		shown := 0
		for now := f; now != nil && now.Head == f.Head && now.Started.Equal(f.Started); {
			for ; shown < len(now.Turns); shown++ {
				if !yield(liveTurn{Turn: now.Turns[shown]}, nil) {
					return
				}
			}
			err := retry.Pause(ctx, pause)
			if err == nil {
				now, err = e.Reader.Flight(ctx, id)
			}
			if err != nil {
				yield(liveTurn{}, err)
				return
			}
		}
		step, turns, err := landed(ctx, e, id, f)
		if err != nil {
			yield(liveTurn{}, err)
			return
		}
		for ; shown < len(turns); shown++ {
			if !yield(liveTurn{Turn: turns[shown], Step: &step}, nil) {
				return
			}
		}
	}
}

// landed returns the step that a flight has become, with its turns; none if it failed.
func landed(ctx context.Context, e *engine.Engine, id string,
	f *status.Flight) (protocol.Hash, []protocol.Hash, error) {
	head, err := e.Reader.Head(ctx, id)
	if err != nil {
		return "", nil, err
	}
	t, err := thread.Open(ctx, e.Reader.Store, head)
	if err != nil {
		return "", nil, err
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return "", nil, err
		}
		if s.Index > f.Number-1 {
			continue
		}
		if s.Index < f.Number-1 || s.Hash == f.Head || s.Role != f.Role {
			break // it failed
		}
		detail, err := thread.ShownDetail(ctx, e.Reader.Store, s.Detail)
		return s.Hash, detail.Turns, err
	}
	return "", nil, nil
}

// salvageBefore returns the nodes from which a thread can continue if a node of step s, or the step before
// it, is lost. It returns them as facts of a reason.
func salvageBefore(ctx context.Context, store cas.Store, s thread.Step, stepLost bool) []string {
	switch {
	case s.Prev == nil:
		return nil
	case !stepLost:
		return []string{"near", string(*s.Prev)}
	}
	whole, err := thread.Survivors(ctx, store, s)
	if err != nil || len(whole) == 0 {
		whole = []protocol.Hash{s.Start} // from the start
	}
	var names []string
	for _, h := range whole[:min(len(whole), 3)] {
		names = append(names, string(h))
	}
	return fault.Near(names)
}

// salvageHead is like [salvageBefore] for a lost head, whose predecessor is in the record of the last try.
func salvageHead(head protocol.Hash, run *status.Run) []string {
	if run == nil || run.Head == head {
		return nil
	}
	return []string{"near", string(run.Head)}
}
