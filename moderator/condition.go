package moderator

import (
	"context"
	"strconv"

	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/protocol"
)

// pickTransition finds the first entry of a list whose condition holds.
func pickTransition(ctx context.Context, s State, list []protocol.Transition) (place, protocol.Edge, error) {
	status, given := statusOf(s.output())
	if !given {
		status = protocol.DefaultStatus
	}
	var tried []trial
	for i, t := range list {
		at := place{s.node(), strconv.Itoa(i), status}
		if t.Condition == "" {
			return at, t.Edge, nil
		}
		c := conditionOf(s.Workflow, t.Condition)
		result, err := c.evaluate(ctx, s)
		if err != nil {
			return place{}, protocol.Edge{}, conditionError(s, at, c, err)
		}
		if result.holds {
			return at, t.Edge, nil
		}
		tried = append(tried, trial{c, result})
	}
	return place{}, protocol.Edge{}, noTransition(s, tried)
}

// condition is what an entry of a list asks.
type condition struct {
	name       string // in the workflow's conditions; "" if it is written inline
	expression string
}

// conditionOf finds the condition that an entry means: a name goes before an
// expression.
func conditionOf(w protocol.Workflow, text string) condition {
	if named, ok := w.Conditions[text]; ok {
		return condition{name: text, expression: named.Expression}
	}
	return condition{expression: text}
}

// outcome is what an expression gave.
type outcome struct {
	value          any
	defined, holds bool
}

// trial is a condition that did not hold.
type trial struct {
	condition
	outcome
}

// inputsBinding is [protocol.InputsVariable] as JSONata names it.
const inputsBinding = "inputs"

func inputsOf(s State) map[string]any {
	if s.Start.Inputs == nil {
		return map[string]any{}
	}
	return s.Start.Inputs
}

// evaluate asks a condition about the state of a thread.
func (c condition) evaluate(ctx context.Context, s State) (outcome, error) {
	expr, err := jsonata.Parse(c.expression)
	if err != nil {
		return outcome{}, err
	}
	input, err := contextFor(s, expr.Reads())
	if err != nil {
		return outcome{}, err
	}
	value, defined, err := expr.Eval(ctx, input, jsonata.Options{Bindings: map[string]any{inputsBinding: inputsOf(s)}})
	if err != nil {
		return outcome{}, err
	}
	return outcome{value, defined, jsonata.Truthy(value, defined)}, nil
}
