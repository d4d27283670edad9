package moderator

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fence"
)

// place names an edge: the node that it leaves, its key in the map or its number
// in the list, and the status that was answered.
type place struct{ node, key, status string }

// promptField is the field of an edge that agents read, or people.
const promptField = "prompt"

// promptOf is the text for whoever is next: the edge's prompt, rendered. Without
// one, a role gets its own description, a person is told who waits, and the end
// needs no words.
func promptOf(s State, at place, edge protocol.Edge, output any) (string, error) {
	if edge.Prompt != "" {
		toPerson := edge.Role == protocol.SuspendNode || s.Workflow.Roles[edge.Role].Person
		toModel := edge.Role != protocol.EndNode && (s.toAgent || !toPerson)
		return renderOver(s, at, promptField, edge.Prompt, view(s.Start, at.status, output), toModel)
	}
	switch edge.Role {
	case protocol.EndNode:
		return "", nil
	case protocol.SuspendNode:
		if at.status == protocol.DefaultStatus {
			return fmt.Sprintf("%q waits for a person.", at.node), nil
		}
		return fmt.Sprintf("%q answered %q and waits for a person.", at.node, at.status), nil
	}
	description := s.Workflow.Roles[edge.Role].Description
	if strings.TrimSpace(description) == "" {
		return "", &TemplateError{Node: at.node, Edge: at.key, Field: "prompt", Err: ErrNoPrompt}
	}
	return description, nil
}

// locationOf is the directory for the next step, "" for the thread's own.
func locationOf(s State, at place, edge protocol.Edge, output any) (string, error) {
	if edge.Location == "" {
		return "", nil
	}
	return renderOver(s, at, "location", edge.Location, view(s.Start, at.status, asWord(s, at, output)), false)
}

// renderOver renders a template over values, which a model gets as a prompt or not. A
// result without any text is an error: an agent with an empty prompt, or in an empty
// directory, fails far from the cause.
func renderOver(s State, at place, field, template string, stack []any, toModel bool) (string, error) {
	fail := func(err error) error {
		return &TemplateError{Node: at.node, Edge: at.key, Field: field, Template: template, Err: err}
	}
	t, err := mustache.Parse(template)
	if err != nil {
		return "", fail(err)
	}
	text, spans, err := t.RenderSpans(stack...)
	if err != nil {
		return "", fail(err)
	}
	if toModel {
		text = fenced(text, spans, s.Start.Prompt)
	}
	if strings.TrimSpace(text) == "" {
		return "", fail(ErrEmpty)
	}
	return text, nil
}

// fenced keeps values from speaking for the moderator. The thread's own prompt is
// its user's word, like the template.
func fenced(text string, values []mustache.Span, task string) string {
	var ofAgents []fence.Span
	for _, v := range values {
		if text[v.From:v.To] != task {
			ofAgents = append(ofAgents, fence.Span(v))
		}
	}
	return fence.Values(text, ofAgents)
}

// view is what a template can see: the output, and behind it the thread's prompt and
// inputs, and the status that the edge was taken by. $prompt and $inputs are always
// the thread's; "prompt" and "$status" may be fields of the output.
func view(start protocol.Start, status string, output any) []any {
	globals := map[string]any{protocol.PromptVariable: start.Prompt, "prompt": start.Prompt, protocol.StatusKey: status}
	if len(start.Inputs) > 0 {
		globals[protocol.InputsVariable] = start.Inputs
	}
	object, ok := output.(map[string]any)
	if !ok {
		return []any{globals, map[string]any{}}
	}
	for _, own := range []string{protocol.PromptVariable, protocol.InputsVariable} {
		if _, hides := object[own]; hides {
			object = maps.Clone(object)
			delete(object, own)
		}
	}
	return []any{globals, object}
}

// Errors of a [TemplateError], beside those of package mustache.
var (
	ErrEmpty    = errors.New("renders to nothing")
	ErrNoPrompt = errors.New("is missing, and the role has no description that could serve")
)
