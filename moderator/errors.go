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

// ErrNotSuspended means that there is nothing to resume: the graph leads on.
var ErrNotSuspended = errors.New("the thread is not suspended")

// ErrForm means that no words serve: a person plays the role, whose answer is data.
var ErrForm = errors.New("a person plays the role")

// ErrChildren means that words reach nobody: threads of their own play the role.
var ErrChildren = errors.New("other threads play the role")

// RouteError means that the graph has no answer. Its text lists what exists.
type RouteError struct {
	Node    string   // that has no answer: a role or $START
	Status  string   // that was looked up
	Known   []string // what exists instead, sorted
	Nearest []string // of Known, if the status or name looks like a typo
	Message string
}

// Error implements error.
func (e *RouteError) Error() string { return e.Message }

// TemplateError is a prompt or location that could not be rendered.
type TemplateError struct {
	Node     string // that the edge leaves
	Edge     string // its status, or in a list its number
	Field    string // "prompt" or "location"
	Template string
	Err      error // of package mustache, [ErrEmpty] or [ErrNoPrompt]
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

// ConditionError is a condition that could not be evaluated.
type ConditionError struct {
	Node       string // whose list it stands in
	Edge       string // its number in the list
	Name       string // in the workflow's conditions; "" if it is written inline
	Expression string
	Context    string // what the expression could use, and what was answered
	Err        error  // of package jsonata, or of the history
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

// noTransition is the error for a list of which no entry applies.
func noTransition(s State, tried []trial) error {
	const most = 10
	e := &RouteError{Node: s.node(), Message: fmt.Sprintf("no transition of %q applies", s.node())}
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

// shown is a condition for a message.
func shown(name, expression string) string {
	if name != "" {
		return fmt.Sprintf("condition %s (%s)", name, plaintext.Short(expression, 200))
	}
	return fmt.Sprintf("condition (%s)", plaintext.Short(expression, 200))
}

// describe tells what a condition could use.
func describe(s State) string {
	text := "the context has " + strings.Join(ContextFields(), ", ")
	if s.Last == nil {
		return text + "; nobody has answered yet"
	}
	return text + "; meta is " + valueText(s.Last.Output, true)
}

// valueText is a value as JSON, cut to what a message can carry.
func valueText(v any, defined bool) string {
	if !defined {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("a value that is no JSON (%v)", err)
	}
	return plaintext.Short(string(text), 300)
}

// noNode is the error for a step of a role that the graph does not know.
func noNode(w protocol.Workflow, node string) error {
	known := slices.Sorted(maps.Keys(w.Graph))
	e := &RouteError{Node: node, Known: known, Nearest: suggest.Nearest(node, known, 3)}
	e.Message = fmt.Sprintf("the graph has no node for %q%s", node, alternatives("it has", e))
	return e
}

// noEdge is the error for a status that the node does not route.
func noEdge(node, status string, given bool, known []string) error {
	e := &RouteError{Node: node, Status: status, Known: known, Nearest: suggest.Nearest(status, known, 3)}
	switch {
	case node == protocol.StartNode:
		e.Nearest = nil
		e.Message = fmt.Sprintf("%s has no edge %q", node, status) + alternatives("it has", e)
	case !given:
		e.Nearest = nil
		e.Message = fmt.Sprintf("%q answered without a %s", node, protocol.StatusKey) + alternatives("its node routes", e)
	default:
		e.Message = fmt.Sprintf("%q answered %s %q, which its node does not route", node, protocol.StatusKey,
			status) + alternatives("it routes", e)
	}
	return e
}

// noRole is the error for an edge that leads nowhere.
func noRole(w protocol.Workflow, at place, target string) error {
	known := slices.Sorted(maps.Keys(w.Roles))
	e := &RouteError{Node: at.node, Status: at.status, Known: known, Nearest: suggest.Nearest(target, known, 3)}
	e.Message = fmt.Sprintf("graph[%s][%s] leads to %q, which is not a role", at.node, at.key,
		target) + alternatives("the roles are", e)
	return e
}

// alternatives lists what exists and what was probably meant.
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
