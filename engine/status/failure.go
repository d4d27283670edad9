package status

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// OnError reports whether a failure of a role is recorded as a step: either the graph has an edge for it, or
// the thread is a child and its parent handles it.
func (r *Reader) OnError(ctx context.Context, p *Position, role string) (bool, error) {
	w, facts := p.Workflow, p.Facts
	const generations = 100 // exceeds the nesting limit; guards against a cycle in damaged facts
	for range generations {
		if moderator.HasFailureEdge(w, role) {
			return true, nil
		}
		of := facts.Parent
		if of == nil {
			return false, nil
		}
		t, err := thread.Open(ctx, r.Nodes(), of.Head)
		if err == nil {
			w, err = r.Workflow(ctx, t.Start.Workflow)
		}
		if err == nil {
			facts, err = r.Heads.Facts(ctx, of.Thread)
		}
		if errors.Is(err, cas.ErrNotFound) {
			return false, nil // the parent is not in this home
		}
		if err != nil {
			return false, err
		}
		if role = of.Role; w.Roles[role].OnFailure != "" {
			return true, nil
		}
	}
	return false, nil
}

// Result returns the result of a child that has ended. broke means that the child has failed and that its
// role fails with it.
func (r *Reader) Result(
	ctx context.Context, w protocol.Workflow, role string, k children.Child,
) (result moderator.Result, broke bool, err error) {
	if result, err = k.Result(ctx, r.Nodes()); err != nil {
		return result, false, err
	}
	continues, part := w.Roles[role].OnFailure != "", w.Roles[k.Role]
	answer, _ := result.Output.(map[string]any)
	plain := part.Player() == protocol.PlayedByCommand && part.Parse == ""
	if continues && plain && answer[protocol.StatusKey] == moderator.CommandFailed {
		result.Status = moderator.JoinFailed
		result.Error = fmt.Sprintf("it exited with status %v", answer["exitCode"])
	}
	if k.Ended.Status != protocol.StatusFailed {
		return result, false, nil
	}
	at, err := r.Position(ctx, k.ID, k.Ended.Head)
	if err != nil {
		return result, false, err
	}
	result.Status, result.Error = moderator.JoinFailed, at.Next.Prompt
	last := at.Thread.Last
	return result, last != nil && last.Error != nil && !continues, nil
}
