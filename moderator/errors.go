package moderator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// ErrNotSuspended means that there is nothing to resume, because the graph has a next step.
var ErrNotSuspended = errors.New("the thread is not suspended")

// ErrForm means that a person plays the role, so it needs structured data instead of text.
var ErrForm = errors.New("a person plays the role")

// ErrChildren means that other threads play the role, so a text can't reach it.
var ErrChildren = errors.New("child threads play the role")

// RouteError means that the graph has no next step. Its text lists the alternatives.
type RouteError struct{ Message string }

func (e *RouteError) Error() string { return e.Message }

// EvalError means that a condition, prompt, location or command can't be evaluated.
type EvalError struct {
	Message string
	Err     error // from package mustache or jsonata, [ErrEmpty], [ErrNoPrompt], or from reading the history
}

func (e *EvalError) Error() string { return e.Message }

func (e *EvalError) Unwrap() error { return e.Err }

// templateError returns the error for a field of an edge that can't be rendered.
func templateError(at place, field, template string, err error) error {
	gap := " "
	if errors.As(err, new(*mustache.MissingError)) || errors.As(err, new(*mustache.SyntaxError)) {
		gap = ":" // a position in the template
	}
	e := &EvalError{fmt.Sprintf("graph[%s][%s]: %s%s%v", at.node, at.key, field, gap, err), err}
	if template != "" {
		e.Message += fmt.Sprintf(" (template: %q)", plaintext.Short(template, 200))
	}
	return e
}

func conditionError(s State, at place, c condition, err error) error {
	return &EvalError{fmt.Sprintf("graph[%s][%s]: %s failed: %v; %s", at.node, at.key, shown(c.name, c.expression), err,
		describe(s)), err}
}

// noTransition returns the error for a list without a matching transition.
func noTransition(s State, tried []trial) error {
	const most = 10
	e := &RouteError{fmt.Sprintf("no transition of %q matches", s.node())}
	for i, t := range tried {
		if i == most {
			e.Message += fmt.Sprintf("; and %d more", len(tried)-most)
			break
		}
		e.Message += fmt.Sprintf("; %s gives %s", shown(t.name, t.expression), valueText(t.value, t.defined))
	}
	e.Message += "; " + describe(s)
	return e
}

// shown formats a condition for a message.
func shown(name, expression string) string {
	if name != "" {
		return fmt.Sprintf("condition %s (%s)", name, plaintext.Short(expression, 200))
	}
	return fmt.Sprintf("condition (%s)", plaintext.Short(expression, 200))
}

// describe lists the values that a condition could use.
func describe(s State) string {
	text := "the context has " + strings.Join(ContextFields(), ", ")
	if s.Last == nil {
		return text + "; no role has answered yet"
	}
	return text + "; meta is " + valueText(s.Last.Output, true)
}

// valueText formats a value as JSON, shortened for a message.
func valueText(v any, defined bool) string {
	if !defined {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("a value that is not JSON (%v)", err)
	}
	return plaintext.Short(string(text), 300)
}

// noNode returns the error for a step of a role that the graph doesn't have.
func noNode(w protocol.Workflow, node string) error {
	return &RouteError{fmt.Sprintf("the graph has no node for %q", node) +
		alternatives("it has", node, slices.Sorted(maps.Keys(w.Graph)))}
}

// noEdge returns the error for a status that the node doesn't route.
func noEdge(node, status string, given bool, known []string) error {
	switch {
	case node == protocol.StartNode:
		return &RouteError{fmt.Sprintf("%s has no edge %q", node, status) + alternatives("it has", "", known)}
	case !given:
		return &RouteError{fmt.Sprintf("%q answered without a %s", node, protocol.StatusKey) +
			alternatives("the edges are", "", known)}
	}
	return &RouteError{fmt.Sprintf("%q answered %s %q, which has no edge", node, protocol.StatusKey, status) +
		alternatives("the edges are", status, known)}
}

// noRole returns the error for an edge to a missing role.
func noRole(w protocol.Workflow, at place, target string) error {
	return &RouteError{fmt.Sprintf("graph[%s][%s] refers to %q, which is not a role", at.node, at.key, target) +
		alternatives("the roles are", target, slices.Sorted(maps.Keys(w.Roles)))}
}

// alternatives lists the existing names and those that look like the intended one, unless that is "".
func alternatives(lead, intended string, known []string) string {
	if len(known) == 0 {
		return "; " + lead + " nothing"
	}
	text := "; " + lead + " " + quoteList(known)
	if near := suggest.Nearest(intended, known, 3); intended != "" && len(near) > 0 {
		text += "; did you mean " + quoteList(near) + "?"
	}
	return text
}

func quoteList(names []string) string {
	const most = 20
	quoted := make([]string, 0, most+1)
	for i, n := range names {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", plaintext.Short(n, 100)))
	}
	return strings.Join(quoted, ", ")
}
