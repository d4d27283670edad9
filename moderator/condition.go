package moderator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/protocol"
)

// pickTransition returns the first transition whose condition holds.
func pickTransition(ctx context.Context, s State, list []protocol.Transition) (place, protocol.Edge, error) {
	status, given := statusOf(s.output())
	if !given {
		status = protocol.DefaultStatus
	}
	var tried []trial
	failed := s.Last != nil && s.Last.Failed
	for i, t := range list {
		at := place{s.node(), strconv.Itoa(i), status}
		asked, ofFailure := OfFailure(s.Workflow, t.Condition)
		if ofFailure != failed {
			continue
		}
		if asked == "" {
			return at, t.Edge, nil
		}
		c := conditionOf(s.Workflow, asked)
		result, err := c.evaluate(ctx, s)
		if err != nil {
			return place{}, protocol.Edge{}, conditionError(s, at, c, err)
		}
		if result.holds {
			return at, t.Edge, nil
		}
		tried = append(tried, trial{c, result})
	}
	if failed {
		return place{s.node(), protocol.ErrorStatus, protocol.ErrorStatus}, protocol.Edge{}, nil
	}
	return place{}, protocol.Edge{}, noTransition(s, tried)
}

// OfFailure reports whether a condition handles a failure of its role: "$error" or "$error and (…)". It
// returns the rest of the condition.
func OfFailure(w protocol.Workflow, condition string) (asked string, ok bool) {
	rest, ok := strings.CutPrefix(condition, protocol.ErrorStatus)
	if !ok || w.Language != protocol.Language3 {
		return condition, false
	}
	if rest == "" {
		return "", true
	}
	rest, ok = strings.CutPrefix(rest, " and (")
	if rest, closed := strings.CutSuffix(rest, ")"); ok && closed {
		return rest, true
	}
	return condition, false
}

// HasFailureEdge reports whether the graph has an edge for a failure of role.
func HasFailureEdge(w protocol.Workflow, role string) bool {
	n := w.Graph[role]
	_, ok := n.Edges[protocol.ErrorStatus]
	for _, t := range n.Transitions {
		_, ofFailure := OfFailure(w, t.Condition)
		ok = ok || ofFailure
	}
	return ok && w.Language == protocol.Language3
}

// condition is the condition of a transition.
type condition struct {
	name       string // key in the workflow's conditions; "" if inline
	expression string
}

// conditionOf resolves the condition of a transition. A name takes precedence over an expression.
func conditionOf(w protocol.Workflow, text string) condition {
	if named, ok := w.Conditions[text]; ok {
		return condition{name: text, expression: named.Expression}
	}
	return condition{expression: text}
}

// outcome is the result of evaluating an expression.
type outcome struct {
	value          any
	defined, holds bool
}

// trial is a condition that did not hold.
type trial struct {
	condition
	outcome
}

// inputsBinding is [protocol.InputsVariable] without the "$", the form of JSONata binding names.
const inputsBinding = "inputs"

func inputsOf(s State) map[string]any {
	if s.Start.Inputs == nil {
		return map[string]any{}
	}
	return s.Start.Inputs
}

// evaluate evaluates the condition against the state of a thread.
func (c condition) evaluate(ctx context.Context, s State) (outcome, error) {
	value, defined, err := valueOf(ctx, s, c.expression, nil)
	if err != nil {
		return outcome{}, err
	}
	return outcome{value, defined, jsonata.Truthy(value, defined)}, nil
}

// HistoryStep is the view of a step in conditions.
type HistoryStep struct {
	Role   string
	Output func() (any, error) // JSON value
	Detail protocol.Hash
	Agent  string
	Failed bool           // not an answer: the role could not be played
	Visits map[string]int // number of steps per role up to and including this one; nil if unknown
}

// ContextFields returns the sorted names that a condition can use.
func ContextFields() []string {
	return []string{"depth", "history", "meta", "output", "role", "start", "steps"}
}

// contextFor builds the input of an expression. It reads only the earlier steps that the expression can
// reach, so a condition on the last output costs the same regardless of the thread's length.
func contextFor(s State, r jsonata.Reads) (map[string]any, error) {
	c := map[string]any{
		"role": nil, "meta": nil, "output": nil, "depth": s.Depth,
		"start": map[string]any{"workflow": string(s.Start.Workflow), "prompt": plain(s.Start).Prompt},
	}
	if s.Last != nil {
		c["role"], c["meta"], c["output"] = s.Last.Role, s.Last.Output, s.Last.Output
	}
	past, err := newest(s, max(needed(r, "history"), needed(r, "steps")))
	if err != nil {
		return nil, err
	}
	history, steps := make([]any, len(past)), make([]any, len(past))
	for i, p := range past {
		output, err := p.Output()
		if err != nil {
			return nil, fmt.Errorf("read previous steps: %w", err)
		}
		history[i] = map[string]any{"role": p.Role, "meta": output}
		steps[i] = map[string]any{"role": p.Role, "output": output, "detail": string(p.Detail), "agent": p.Agent}
	}
	c["history"], c["steps"] = history, steps
	return c, nil
}

// errNoHistory reports that the caller of [Next] didn't provide History.
var errNoHistory = errors.New("previous steps are missing")

// all means every step.
const all = int(^uint(0) >> 1)

// needed returns how many of the newest steps an expression can reach through a field.
func needed(r jsonata.Reads, field string) int {
	if n, ok := r.Newest(field); ok {
		return n
	}
	return all
}

// newest reads up to n steps, and returns them oldest first.
func newest(s State, n int) ([]HistoryStep, error) {
	if n == 0 || s.Last == nil {
		return nil, nil
	}
	if s.History == nil {
		return nil, errNoHistory
	}
	var past []HistoryStep
	for p, err := range s.History {
		if err != nil {
			return nil, fmt.Errorf("read previous steps: %w", err)
		}
		if past = append(past, p); len(past) == n {
			break
		}
	}
	slices.Reverse(past)
	return past, nil
}
