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
type RouteError struct {
	Node    string   // node without a matching edge: a role or $START
	Status  string   // status without an edge
	Known   []string // existing alternatives, sorted
	Nearest []string // entries of Known that look like the intended name
	Message string
}

// Error implements error.
func (e *RouteError) Error() string { return e.Message }

// TemplateError is a prompt or location that can't be rendered.
type TemplateError struct {
	Node     string // node that the edge leaves
	Edge     string // status of the edge, or its number in a list
	Field    string // "prompt" or "location"
	Template string
	Err      error // from package mustache, [ErrEmpty] or [ErrNoPrompt]
}

// Error implements error.
func (e *TemplateError) Error() string {
	text := fmt.Sprintf("graph[%s][%s]: %s %v", e.Node, e.Edge, e.Field, e.Err)
	var missing *mustache.MissingError
	var syntax *mustache.SyntaxError
	if errors.As(e.Err, &missing) || errors.As(e.Err, &syntax) {
		text = fmt.Sprintf("graph[%s][%s]: %s:%v", e.Node, e.Edge, e.Field, e.Err)
	}
	if e.Template != "" {
		text += fmt.Sprintf(" (template: %q)", plaintext.Short(e.Template, 200))
	}
	return text
}

// Unwrap returns the cause.
func (e *TemplateError) Unwrap() error { return e.Err }

// ConditionError is a condition that can't be evaluated.
type ConditionError struct {
	Node       string // node whose list has the condition
	Edge       string // position in the list
	Name       string // key in the workflow's conditions; "" if inline
	Expression string
	Context    string // values the expression could use, and the answer
	Err        error  // from package jsonata, or from reading the history
}

// Error implements error.
func (e *ConditionError) Error() string {
	return fmt.Sprintf("graph[%s][%s]: %s failed: %v; %s", e.Node, e.Edge, shown(e.Name, e.Expression), e.Err, e.Context)
}

// Unwrap returns the cause.
func (e *ConditionError) Unwrap() error { return e.Err }

func conditionError(s State, at place, c condition, err error) error {
	return &ConditionError{Node: at.node, Edge: at.key, Name: c.name, Expression: c.expression, Context: describe(s),
		Err: err}
}

// noTransition returns the error for a list without a matching transition.
func noTransition(s State, tried []trial) error {
	const most = 10
	e := &RouteError{Node: s.node(), Message: fmt.Sprintf("no transition of %q matches", s.node())}
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
	known := slices.Sorted(maps.Keys(w.Graph))
	e := &RouteError{Node: node, Known: known, Nearest: suggest.Nearest(node, known, 3)}
	e.Message = fmt.Sprintf("the graph has no node for %q%s", node, alternatives("it has", e))
	return e
}

// noEdge returns the error for a status that the node doesn't route.
func noEdge(node, status string, given bool, known []string) error {
	e := &RouteError{Node: node, Status: status, Known: known, Nearest: suggest.Nearest(status, known, 3)}
	switch {
	case node == protocol.StartNode:
		e.Nearest = nil
		e.Message = fmt.Sprintf("%s has no edge %q", node, status) + alternatives("it has", e)
	case !given:
		e.Nearest = nil
		e.Message = fmt.Sprintf("%q answered without a %s", node, protocol.StatusKey) + alternatives("the edges are", e)
	default:
		e.Message = fmt.Sprintf("%q answered %s %q, which has no edge", node, protocol.StatusKey,
			status) + alternatives("the edges are", e)
	}
	return e
}

// noRole returns the error for an edge to a missing role.
func noRole(w protocol.Workflow, at place, target string) error {
	known := slices.Sorted(maps.Keys(w.Roles))
	e := &RouteError{Node: at.node, Status: at.status, Known: known, Nearest: suggest.Nearest(target, known, 3)}
	e.Message = fmt.Sprintf("graph[%s][%s] refers to %q, which is not a role", at.node, at.key,
		target) + alternatives("the roles are", e)
	return e
}

// alternatives lists the existing names and the likely intended ones.
func alternatives(lead string, e *RouteError) string {
	text := "; " + lead + " nothing"
	if len(e.Known) > 0 {
		text = "; " + lead + " " + quoteList(e.Known)
	}
	if len(e.Nearest) > 0 {
		text += "; did you mean " + quoteList(e.Nearest) + "?"
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
