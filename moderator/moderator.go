// Package moderator decides which role is next. A decision is a pure function of the workflow and the thread
// so far: it uses no model, clock or files.
//
// A thread without steps is at $START; otherwise it is at the node of its newest step's role. A node is a map
// or a list. In a map the step's status selects the edge; in a list the first edge whose condition holds is
// taken (condition.go). The edge specifies the next role, its prompt and its directory. Limits, and a role
// that asks to suspend, take precedence.
package moderator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/util/render"
)

// State is the part of a thread that routing needs: the newest step and counters, so a decision costs the
// same regardless of the thread's length. Only a condition on the history reads more.
type State struct {
	Workflow protocol.Workflow
	Start    protocol.Start
	Last     *Last // nil: no step yet
	// Depth is the number of steps in the thread, and History yields them, newest first. History is called
	// only if a condition can reach it; [Next] returns its errors.
	Depth     int
	History   iter.Seq2[HistoryStep, error]
	Artifacts string // directory of [protocol.EnvArtifacts]; "" without one
	// Body reads the text below the frontmatter of the newest answer; nil without one.
	Body func() (string, error)
	// Limits are the limits in force: those of the workflow, completed from the config. Zero means no limit.
	Limits protocol.Limits
	// Visits and Steps count the steps of each role and of the thread since a limit was last raised.
	Visits map[string]int
	Steps  int
	Spent  protocol.Amount // usage; figures that a person accepted don't count as unknown
	// KeyOf returns the key of an item of an "each" role: the same key for equal items, different keys
	// otherwise. If nil, all items have the same key, which suffices to find the next role.
	KeyOf func(item any) (string, error)
	// Lists means that only the next role is needed: its prompt, directory and command are not rendered, unless
	// it is for a person or has children.
	Lists bool

	toAgent   bool   // the question is for the agent that continues with its answer
	toProgram bool   // the rendered text is for a program
	artifacts string // value of [protocol.ArtifactsVariable]; "" if unavailable
}

// Last is the newest step.
type Last struct {
	Role     string
	Output   any               // JSON value
	Suspend  *protocol.Suspend // set if the step asked to suspend
	Location string            // directory of the step; a resumed role runs there again
	// Failed means that the role could not be played. Output is then [protocol.Step.FailureAnswer].
	Failed bool
}

// Kind is the kind of a decision.
type Kind string

// The kinds of decision.
const (
	Run     Kind = "run"     // run Role with Prompt at Location
	End     Kind = "end"     // completed
	Fan     Kind = "fan"     // Role is played by Children
	Suspend Kind = "suspend" // wait for a person; resuming runs Role, or the person's answer replaces it
)

// Cause is the reason for a suspension.
type Cause string

// The causes.
const (
	ByTarget Cause = "target" // an edge to $SUSPEND
	ByOutput Cause = "output" // the role asked
	ByLimit  Cause = "limit"  // a step limit was reached
	ByBudget Cause = "budget" // a cost, token or time limit was reached
	ByPerson Cause = "person" // a person plays the next role
)

// Decision describes the next action in a thread.
type Decision struct {
	Kind Kind
	Role string // role to run now or after resuming
	// Prompt is the rendered prompt. For Suspend it is the message to the person; for End the result text, ""
	// if the edge has none.
	Prompt   string
	Location string // rendered; "" is the thread's directory
	// Command is the rendered command, with its variables, if the next role is a command. A role that
	// resumes with a person's answer runs its previous command again.
	Command []string
	Env     map[string]string
	// Children are the threads that play the role, in the order of their names or items.
	Children []Child
	// Cause is the cause of a suspension or, for a Run returned by Resume, of the suspension that it answers,
	// such as a limit that a person raised.
	Cause  Cause
	Status string // status that selected the edge
	Failed bool   // for End: the thread failed
}

// Next decides what happens next. It returns a *[RouteError] if the graph has no next step, and an *[EvalError] if
// a condition fails or a template can't be rendered; the thread's state doesn't change then. Canceling ctx stops
// the evaluation of a condition.
func Next(ctx context.Context, s State) (Decision, error) {
	if reason, ok := asksToSuspend(s.Last); ok {
		return Decision{Kind: Suspend, Role: s.Last.Role, Prompt: reason, Cause: ByOutput, Status: protocol.SuspendNode}, nil
	}
	d, err := Route(ctx, s)
	if err != nil || d.Kind != Run && d.Kind != Fan {
		return d, err
	}
	if s.Workflow.Roles[d.Role].Person { // limits don't apply to people
		d.Kind, d.Cause = Suspend, ByPerson
		return d, nil
	}
	if reason, ok := atLimit(s, d.Role); ok {
		return Decision{Kind: Suspend, Role: d.Role, Prompt: reason, Cause: ByLimit, Status: d.Status}, nil
	}
	if reason, ok := OverBudget(s, d.Role); ok {
		return Decision{Kind: Suspend, Role: d.Role, Prompt: reason, Cause: ByBudget, Status: d.Status}, nil
	}
	return d, nil
}

// Route is like [Next] but ignores limits and a role's request to suspend.
func Route(ctx context.Context, s State) (Decision, error) {
	at, edge, err := pick(ctx, s)
	if err != nil {
		return Decision{}, err
	}
	if s.Last != nil && s.Last.Failed && edge.Role == "" { // a failure without an edge
		why, _ := s.Last.Output.(map[string]any)["error"].(string)
		return Decision{Kind: End, Failed: true, Prompt: why, Status: protocol.ErrorStatus}, nil
	}
	return follow(ctx, s, at, edge, s.output())
}

// output returns the newest answer, or nil.
func (s State) output() any {
	if s.Last == nil {
		return nil
	}
	return s.Last.Output
}

// node returns the node that the thread is at.
func (s State) node() string {
	if s.Last == nil {
		return protocol.StartNode
	}
	return s.Last.Role
}

// pick returns the edge for the newest step. After a failure without a matching edge it returns an edge
// without a role.
func pick(ctx context.Context, s State) (place, protocol.Edge, error) {
	node := s.node()
	n, ok := s.Workflow.Graph[node]
	if !ok {
		return place{}, protocol.Edge{}, noNode(s.Workflow, node)
	}
	if n.Transitions != nil {
		return pickTransition(ctx, s, n.Transitions)
	}
	if s.Last != nil && s.Last.Failed {
		return place{node, protocol.ErrorStatus, protocol.ErrorStatus}, n.Edges[protocol.ErrorStatus], nil
	}
	if _, forFailures := n.Edges[protocol.ErrorStatus]; forFailures && s.Workflow.Language == protocol.Language3 {
		n.Edges = maps.Clone(n.Edges) // no answer may select this edge
		delete(n.Edges, protocol.ErrorStatus)
	}
	status, edge, err := pickEdge(n, node, s.output())
	return place{node, status, status}, edge, err
}

// pickEdge returns the edge of a map for an output. A status without an edge uses the edge "_". $START has no
// status: it uses that edge or its alias.
func pickEdge(n protocol.GraphNode, node string, output any) (status string, _ protocol.Edge, _ error) {
	status, given := statusOf(output)
	keys := []string{status, protocol.DefaultStatus}
	switch edge, only := n.Edges[protocol.DefaultStatus]; {
	case node == protocol.StartNode:
		status, given, keys = protocol.DefaultStatus, true, []string{protocol.DefaultStatus, protocol.StartAlias}
	case only && len(n.Edges) == 1:
		return protocol.DefaultStatus, edge, nil
	case !given:
		keys = keys[1:]
	}
	for _, key := range keys {
		if edge, ok := n.Edges[key]; ok {
			return key, edge, nil
		}
	}
	return "", protocol.Edge{}, noEdge(node, status, given, slices.Sorted(maps.Keys(n.Edges)))
}

// statusOf returns the output's $status or, without one, its status. Only strings count.
func statusOf(output any) (string, bool) {
	object, ok := output.(map[string]any)
	if !ok {
		return "", false
	}
	for _, key := range []string{protocol.StatusKey, "status"} {
		if status, ok := object[key].(string); ok {
			return status, true
		}
	}
	return "", false
}

// follow returns the decision for an edge.
func follow(ctx context.Context, s State, at place, edge protocol.Edge, output any) (Decision, error) {
	d := Decision{Kind: Run, Role: edge.Role, Status: at.status}
	switch _, isRole := s.Workflow.Roles[edge.Role]; {
	case edge.Role == protocol.EndNode, edge.Role == protocol.FailNode:
		d.Kind, d.Role, d.Failed = End, "", edge.Role == protocol.FailNode
	case edge.Role == protocol.SuspendNode:
		if at.node == protocol.StartNode {
			return Decision{}, &RouteError{"a thread cannot start with " + protocol.SuspendNode}
		}
		d.Kind, d.Role, d.Cause = Suspend, s.Last.Role, ByTarget
	case !isRole:
		return Decision{}, noRole(s.Workflow, at, edge.Role)
	}
	if role := s.Workflow.Roles[edge.Role]; s.Lists && d.Kind == Run && !role.Person && !role.HasChildren() {
		return d, nil
	}
	var err error
	if d.Prompt, err = promptOf(s, at, edge, output); err != nil {
		return Decision{}, err
	}
	if d.Kind != Run {
		return d, nil
	}
	if d.Location, err = locationOf(s, at, edge, output); err != nil {
		return Decision{}, err
	}
	if s.Workflow.Roles[edge.Role].HasChildren() {
		err = fan(ctx, s, at, &d, output)
		return d, err
	}
	d.Command, d.Env, err = commandOf(s, at, edge.Role, output)
	return d, err
}

// atLimit reports whether another step of role would exceed a limit, and why.
func atLimit(s State, role string) (string, bool) {
	if most := s.Limits.MaxSteps; most > 0 && s.Steps >= most {
		return fmt.Sprintf("the limit of %s is reached (maxSteps); next is role %q; resuming grants as many again",
			render.Count(most, "step"), role), true
	}
	if most := s.Limits.MaxVisitsPerRole; most > 0 && s.Visits[role] >= most {
		return fmt.Sprintf("the limit of %s of role %q is reached (maxVisitsPerRole); resuming grants as many again",
			render.Count(most, "step"), role), true
	}
	return "", false
}

// completedPrompt is the default prompt for a role that resumes a completed thread.
const completedPrompt = "Previous run completed. Resuming with additional context."

// Resume returns the decision for a person's answer. It always runs a role, with the supplement at the end of
// its prompt:
//
//   - Suspended by a target or an output: the suspended role runs again in the
//     same directory, with its question.
//   - Suspended by a limit: the next role runs, as its edge specifies. The caller asks
//     [OverBudget] whether the raised limit suffices.
//   - Completed (ended is true): the thread starts over at $START, by the edge "resume"
//     if there is one.
//
// It returns [ErrNotSuspended] if the thread isn't suspended, [ErrForm] if a person plays the role, and the
// errors of [Next].
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
		if d, err = Route(ctx, s); err != nil {
			return Decision{}, err
		}
		d.Cause = cause
	default:
		d.Kind, d.Location = Run, s.Last.Location
		if _, own := asksToSuspend(s.Last); own {
			d.Prompt = promptquote.Text(promptquote.Reason, strings.TrimSpace(d.Prompt))
		}
	}
	d.Prompt = paragraphs(d.Prompt, supplement)
	return d, nil
}

// restart routes from $START as if the thread were new. The history keeps the earlier steps, so the prompt
// only states that the thread continues.
func restart(ctx context.Context, s State, supplement string) (Decision, error) {
	s.Last, s.Depth = nil, 0
	start := s.Workflow.Graph[protocol.StartNode]
	edge, ok := start.Edges[protocol.ResumeStatus]
	at := place{protocol.StartNode, protocol.ResumeStatus, protocol.ResumeStatus}
	if !ok {
		s.History = nil
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
		return Decision{}, &RouteError{fmt.Sprintf("%s leads straight to %s, so no role can be resumed", at.node, edge.Role)}
	}
	d.Prompt = paragraphs(d.Prompt, supplement)
	return d, nil
}

// asksToSuspend reports whether the newest step asked to suspend, and its reason.
func asksToSuspend(last *Last) (string, bool) {
	if last == nil {
		return "", false
	}
	reason := ""
	if last.Suspend != nil {
		reason = last.Suspend.Reason
	} else if status, ok := statusOf(last.Output); ok && status == protocol.SuspendNode {
		// A role's own schema may allow the reserved status.
		reason, _ = last.Output.(map[string]any)["reason"].(string)
	} else {
		return "", false
	}
	if strings.TrimSpace(reason) == "" {
		reason = fmt.Sprintf("%q suspended and gave no reason.", last.Role)
	}
	return reason, true
}

// paragraphs joins a text and a supplement with a blank line. It ignores a blank supplement.
func paragraphs(text, supplement string) string {
	if strings.TrimSpace(supplement) == "" {
		return text
	}
	return strings.TrimRight(text, "\r\n") + "\n\n" + supplement
}

// place identifies an edge: the node that it leaves, its key in the map or number in the list, and the status
// of the answer.
type place struct{ node, key, status string }

// promptField is the name of the field with the text for an agent or a person.
const promptField = "prompt"

// promptOf returns the rendered prompt of an edge. Without one, a role gets its description, a person a note
// about the waiting role, and the end an empty text.
func promptOf(s State, at place, edge protocol.Edge, output any) (string, error) {
	if edge.Prompt != "" {
		asksPerson := edge.Role == protocol.SuspendNode || s.Workflow.Roles[edge.Role].Person
		ends := edge.Role == protocol.EndNode || edge.Role == protocol.FailNode
		to, start := toModel, s.Start
		if ends || asksPerson && !s.toAgent {
			to, start = toPerson, plain(start)
		}
		return renderOver(s, at, promptField, edge.Prompt, view(start, at.status, output), to)
	}
	switch edge.Role {
	case protocol.EndNode, protocol.FailNode:
		return "", nil
	case protocol.SuspendNode:
		if at.status == protocol.DefaultStatus {
			return fmt.Sprintf("%q waits for a person.", at.node), nil
		}
		return fmt.Sprintf("%q answered %q and waits for a person.", at.node, at.status), nil
	}
	role := s.Workflow.Roles[edge.Role]
	description := role.Description
	if p := role.Player(); strings.TrimSpace(description) == "" && (p == protocol.PlayedByAgent || p == protocol.PlayedByPerson) {
		return "", templateError(at, "prompt", "", ErrNoPrompt)
	}
	return description, nil
}

// locationOf returns the directory of the next step; "" means the thread's directory.
func locationOf(s State, at place, edge protocol.Edge, output any) (string, error) {
	if edge.Location == "" {
		return "", nil
	}
	return renderOver(s, at, "location", edge.Location, view(plain(s.Start), at.status, asWord(s, at.node, output)), toProgram)
}

// reader is the recipient of a rendered template.
type reader int

const (
	toPerson reader = iota
	toModel
	toProgram
)

// renderOver renders a template over values. An empty result is an error: an agent with an empty prompt or
// directory would fail far from the cause.
func renderOver(s State, at place, field, template string, stack []any, to reader) (string, error) {
	fail := func(err error) error { return templateError(at, field, template, err) }
	t, err := mustache.Parse(template)
	if err != nil {
		return "", fail(err)
	}
	if s.toProgram = to == toProgram; !s.toProgram { // keeps stored prompts independent of the machine
		s.artifacts = "$" + protocol.EnvArtifacts
	}
	text, spans, err := s.render(t, stack)
	if err != nil {
		return "", fail(err)
	}
	if to == toModel {
		text = quoted(text, spans, s.Start.Prompt)
	}
	if strings.TrimSpace(text) == "" {
		return "", fail(ErrEmpty)
	}
	return text, nil
}

// quoted fences values, so that they can't pass for instructions of the moderator. The thread's own prompt
// comes from the user and stays unfenced.
func quoted(text string, values []mustache.Span, task string) string {
	var ofAgents []promptquote.Span
	for _, v := range values {
		if value := text[v.From:v.To]; value != task && value != "$"+protocol.EnvArtifacts {
			ofAgents = append(ofAgents, promptquote.Span(v))
		}
	}
	return promptquote.Values(text, ofAgents)
}

// plain returns a start whose prompt has no fences, for a command or a person. A child's prompt may quote
// agents' texts.
func plain(start protocol.Start) protocol.Start {
	start.Prompt = promptquote.Plain(start.Prompt)
	return start
}

// view returns the values that a template can use: the output, then the thread's prompt and inputs, and the
// status that selected the edge. $prompt and $inputs always belong to the thread; "prompt" and "$status" can
// be fields of the output.
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

// Causes of an [EvalError], in addition to those of package mustache.
var (
	ErrEmpty    = errors.New("renders to nothing")
	ErrNoPrompt = errors.New("is missing, and the role has no description")
)
