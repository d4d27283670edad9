package moderator

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fence"
)

// completedPrompt tells a role that a completed thread goes on, if the workflow
// has no words of its own for that.
const completedPrompt = "Previous run completed. Resuming with additional context."

// Resume is the decision that a person's answer leads to: always to run a role,
// with the supplement at the end of its prompt.
//
//   - Suspended by a target or an output: the role that suspended runs again,
//     where it ran, with what it asked.
//   - Suspended by a limit: the role that was next runs, as the edge says. Whether it
//     may, with what was granted, the caller asks [OverBudget].
//   - Completed (ended is true): it starts over at $START, by the edge "resume"
//     if there is one.
//
// It errs with [ErrNotSuspended] if the thread is not suspended, with [ErrForm] if a
// person plays the role, and as [Next].
func Resume(ctx context.Context, s State, ended bool, supplement string) (Decision, error) {
	if ended {
		return restart(ctx, s, supplement)
	}
	s.toAgent = true
	d, err := Next(ctx, s)
	if err != nil {
		return Decision{}, err
	}
	switch {
	case d.Kind != Suspend:
		return Decision{}, ErrNotSuspended
	case s.Workflow.Roles[d.Role].Person:
		return d, ErrForm
	case s.Workflow.Roles[d.Role].HasChildren():
		return d, ErrChildren
	case d.Cause == ByLimit, d.Cause == ByBudget:
		cause := d.Cause
		if d, err = route(ctx, s); err != nil {
			return Decision{}, err
		}
		d.Cause = cause
	default:
		d.Kind, d.Location = Run, s.Last.Location
		if _, own := asksToSuspend(s.Last); own {
			d.Prompt = fence.Always(fence.Reason, strings.TrimSpace(d.Prompt))
		}
	}
	d.Prompt = paragraphs(d.Prompt, supplement)
	return d, nil
}

// restart routes from $START as if the thread were new. The steps so far stay
// in its history, so the prompt only says that it goes on.
func restart(ctx context.Context, s State, supplement string) (Decision, error) {
	s.Last, s.Depth = nil, 0
	start := s.Workflow.Graph[protocol.StartNode]
	edge, ok := start.Edges[protocol.ResumeStatus]
	at := place{protocol.StartNode, protocol.ResumeStatus, protocol.ResumeStatus}
	if !ok {
		var err error
		if at, edge, err = pick(ctx, s); err != nil {
			return Decision{}, err
		}
		edge.Prompt = completedPrompt
	}
	d, err := follow(ctx, s, at, edge, nil)
	if err != nil {
		return Decision{}, err
	}
	if s.Workflow.Roles[d.Role].Person {
		return d, ErrForm
	}
	if d.Kind == Fan {
		return d, ErrChildren
	}
	if d.Kind != Run {
		return Decision{}, &RouteError{Node: at.node, Status: at.status, Message: fmt.Sprintf(
			"%s leads straight to %s: there is no role to resume", at.node, edge.Role)}
	}
	d.Prompt = paragraphs(d.Prompt, supplement)
	return d, nil
}

// asksToSuspend reports whether the newest step waits for a person of its own
// accord, and what it says.
func asksToSuspend(last *Last) (string, bool) {
	if last == nil {
		return "", false
	}
	reason := ""
	if last.Suspend != nil {
		reason = last.Suspend.Reason
	} else if status, ok := statusOf(last.Output); ok && status == protocol.SuspendNode {
		// A schema of its own may admit the reserved status, too.
		reason, _ = last.Output.(map[string]any)["reason"].(string)
	} else {
		return "", false
	}
	if strings.TrimSpace(reason) == "" {
		reason = fmt.Sprintf("%q suspended and gave no reason.", last.Role)
	}
	return reason, true
}

// paragraphs joins a text and a supplement by a blank line; a blank supplement
// adds nothing.
func paragraphs(text, supplement string) string {
	if strings.TrimSpace(supplement) == "" {
		return text
	}
	return strings.TrimRight(text, "\r\n") + "\n\n" + supplement
}
