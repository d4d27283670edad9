// Package moderator decides who is next. It is a pure function of the workflow
// and of what the thread has said so far: no model, no clock, no files.
//
// A thread that began and has no step yet stands at $START; after a step it
// stands at the node of that step's role. A node is a map or a list. In a map the
// step's status picks the edge; in a list the first one whose condition holds is
// taken (condition.go). The edge names who is next, with which prompt, in which
// directory. Limits and a role's own wish to suspend come in between.
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
)

// State is a thread as far as routing needs it: the newest step and the counts,
// so that a decision costs the same however long the thread is. Only a condition
// over the history reads more.
type State struct {
	Workflow protocol.Workflow
	Start    protocol.Start
	Last     *Last // nil: no step yet
	// Depth is the number of steps of the thread, and History yields them, newest
	// first. It is only called if a condition can touch it; what it errs with is
	// what [Next] errs with.
	Depth     int
	History   iter.Seq2[HistoryStep, error]
	Artifacts string // the directory of [protocol.EnvArtifacts]; "": none
	// Body reads the text below the block of the newest step's answer; nil: there is none.
	Body func() (string, error)
	// Limits in force: the workflow's, filled up from the config. Zero is no limit.
	Limits protocol.Limits
	// Visits, Steps: how often each role had its turn and how many steps there
	// were since a limit was last lifted.
	Visits map[string]int
	Steps  int
	Spent  protocol.Amount // what a person has accepted is not unknown
	// KeyOf names an item of a role that is played for each of several: equal items
	// alike, others differently. Nil: all alike, for whoever asks only who is next.
	KeyOf func(item any) (string, error)

	toAgent   bool   // the question is for the agent that continues with its answer
	toProgram bool   // what is rendered is for a program
	artifacts string // what [protocol.ArtifactsVariable] renders to; "": it does not exist here
}

// Last is the newest step.
type Last struct {
	Role     string
	Output   any               // JSON value
	Suspend  *protocol.Suspend // set if the step suspended
	Location string            // where the step ran: a resumed role runs there again
	// Failed: the role could not be played. Output is then [protocol.Step.FailureAnswer].
	Failed bool
}

// Kind is what a decision is about.
type Kind string

// The kinds of decision.
const (
	Run     Kind = "run"     // run Role with Prompt at Location
	End     Kind = "end"     // completed
	Fan     Kind = "fan"     // Role is played by Children
	Suspend Kind = "suspend" // wait for a person; resuming runs Role, or a person answers for it
)

// Cause tells why a thread is suspended.
type Cause string

// The causes.
const (
	ByTarget Cause = "target" // the graph leads to $SUSPEND
	ByOutput Cause = "output" // the role itself asked
	ByLimit  Cause = "limit"  // a limit of steps was reached
	ByBudget Cause = "budget" // a limit of what the run may cost was reached
	ByPerson Cause = "person" // the role that is next is played by a person
)

// Decision is what happens next.
type Decision struct {
	Kind Kind
	Role string // to run, or that resuming runs
	// Prompt is rendered. For Suspend it is the message to the person; for End
	// the closing words, "" if the edge has none.
	Prompt   string
	Location string // rendered; "" is the thread's directory
	// Command is rendered: the words of a role that is a command, if the graph leads to
	// it, and the variables that it gets. Whom a person's answer leads back to runs what it ran before.
	Command []string
	Env     map[string]string
	// Children play the role together, if it has any, in the order of their names or
	// items.
	Children []Child
	// Cause of a suspension; of a Run from Resume, the cause of the suspension
	// that it answers. A limit that a person lifted shows here.
	Cause  Cause
	Status string // the status that was routed by
	Failed bool   // of End: the thread has failed
}

// Next decides. It errs if the graph has no answer (*[RouteError]), a condition
// fails (*[ConditionError]) or a template cannot be rendered (*[TemplateError]);
// the thread then stays where it is. A context that ends stops a condition.
func Next(ctx context.Context, s State) (Decision, error) {
	if reason, ok := asksToSuspend(s.Last); ok {
		return Decision{Kind: Suspend, Role: s.Last.Role, Prompt: reason, Cause: ByOutput, Status: protocol.SuspendNode}, nil
	}
	d, err := route(ctx, s)
	if err != nil || d.Kind != Run && d.Kind != Fan {
		return d, err
	}
	if s.Workflow.Roles[d.Role].Person { // whom no limit needs to call
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

// route follows the edge that the thread's newest step leads to, without regard
// to limits.
func route(ctx context.Context, s State) (Decision, error) {
	at, edge, err := pick(ctx, s)
	if err != nil {
		return Decision{}, err
	}
	if edge.Role == "" { // a failure that nothing leads on from
		why, _ := s.Last.Output.(map[string]any)["error"].(string)
		return Decision{Kind: End, Failed: true, Prompt: why, Status: protocol.ErrorStatus}, nil
	}
	return follow(ctx, s, at, edge, s.output())
}

// Route is [Next] without regard to limits and to what a role itself has asked for.
func Route(ctx context.Context, s State) (Decision, error) { return route(ctx, s) }

// output is what the newest step answered, nil if there is none.
func (s State) output() any {
	if s.Last == nil {
		return nil
	}
	return s.Last.Output
}

// node is where the thread stands.
func (s State) node() string {
	if s.Last == nil {
		return protocol.StartNode
	}
	return s.Last.Role
}

// pick finds the edge that fits the newest step. After a failure that is an edge without a role if
// there is none.
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
		n.Edges = maps.Clone(n.Edges) // no answer takes it, whatever it says
		delete(n.Edges, protocol.ErrorStatus)
	}
	status, edge, err := pickEdge(n, node, s.output())
	return place{node, status, status}, edge, err
}

// pickEdge finds the one edge of a map that fits an output. At $START there is
// no status: the edge "_", or its alias, is taken.
func pickEdge(n protocol.GraphNode, node string, output any) (status string, _ protocol.Edge, _ error) {
	if node == protocol.StartNode {
		return pickStart(n)
	}
	if edge, only := n.Edges[protocol.DefaultStatus]; only && len(n.Edges) == 1 {
		return protocol.DefaultStatus, edge, nil
	}
	status, given := statusOf(output)
	if !given {
		status = protocol.DefaultStatus
	}
	edge, ok := n.Edges[status]
	if !ok { // what has no edge of its own takes that of the others
		status, edge, ok = orDefault(n, status)
	}
	if !ok {
		return "", protocol.Edge{}, noEdge(node, status, given, slices.Sorted(maps.Keys(n.Edges)))
	}
	return status, edge, nil
}

func orDefault(n protocol.GraphNode, status string) (string, protocol.Edge, bool) {
	if edge, ok := n.Edges[protocol.DefaultStatus]; ok {
		return protocol.DefaultStatus, edge, true
	}
	return status, protocol.Edge{}, false
}

func pickStart(n protocol.GraphNode) (string, protocol.Edge, error) {
	for _, status := range []string{protocol.DefaultStatus, protocol.StartAlias} {
		if edge, ok := n.Edges[status]; ok {
			return status, edge, nil
		}
	}
	return "", protocol.Edge{}, noEdge(protocol.StartNode, protocol.DefaultStatus, true, slices.Sorted(maps.Keys(n.Edges)))
}

// statusOf is the output's $status, else its status; only strings count.
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

// follow turns an edge into a decision.
func follow(ctx context.Context, s State, at place, edge protocol.Edge, output any) (Decision, error) {
	d := Decision{Kind: Run, Role: edge.Role, Status: at.status}
	switch _, isRole := s.Workflow.Roles[edge.Role]; {
	case edge.Role == protocol.EndNode, edge.Role == protocol.FailNode:
		d.Kind, d.Role, d.Failed = End, "", edge.Role == protocol.FailNode
	case edge.Role == protocol.SuspendNode:
		if at.node == protocol.StartNode {
			return Decision{}, &RouteError{Node: at.node, Status: at.status,
				Message: "a thread cannot start with " + protocol.SuspendNode}
		}
		d.Kind, d.Role, d.Cause = Suspend, s.Last.Role, ByTarget
	case !isRole:
		return Decision{}, noRole(s.Workflow, at, edge.Role)
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

// atLimit reports whether one more step of a role would go beyond a limit, and why.
func atLimit(s State, role string) (string, bool) {
	if most := s.Limits.MaxSteps; most > 0 && s.Steps >= most {
		return fmt.Sprintf("the limit of %s is reached (maxSteps); %q would be next. Resuming grants as many again.",
			plural(most, "step"), role), true
	}
	if most := s.Limits.MaxVisitsPerRole; most > 0 && s.Visits[role] >= most {
		return fmt.Sprintf("%q had its turn %s (maxVisitsPerRole) and would be next again. Resuming grants as many again.",
			role, plural(most, "time")), true
	}
	return "", false
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

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
			d.Prompt = promptquote.Text(promptquote.Reason, strings.TrimSpace(d.Prompt))
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
		return "", &TemplateError{Node: at.node, Edge: at.key, Field: "prompt", Err: ErrNoPrompt}
	}
	return description, nil
}

// locationOf is the directory for the next step, "" for the thread's own.
func locationOf(s State, at place, edge protocol.Edge, output any) (string, error) {
	if edge.Location == "" {
		return "", nil
	}
	return renderOver(s, at, "location", edge.Location, view(plain(s.Start), at.status, asWord(s, at.node, output)), toProgram)
}

// reader is who gets what a template renders to.
type reader int

const (
	toPerson reader = iota
	toModel
	toProgram
)

// renderOver renders a template over values. A
// result without any text is an error: an agent with an empty prompt, or in an empty
// directory, fails far from the cause.
func renderOver(s State, at place, field, template string, stack []any, to reader) (string, error) {
	fail := func(err error) error {
		return &TemplateError{Node: at.node, Edge: at.key, Field: field, Template: template, Err: err}
	}
	t, err := mustache.Parse(template)
	if err != nil {
		return "", fail(err)
	}
	if s.toProgram = to == toProgram; !s.toProgram { // so that no stored prompt depends on a machine
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

// quoted keeps values from speaking for the moderator. The thread's own prompt is
// its user's word, like the template.
func quoted(text string, values []mustache.Span, task string) string {
	var ofAgents []promptquote.Span
	for _, v := range values {
		if value := text[v.From:v.To]; value != task && value != "$"+protocol.EnvArtifacts {
			ofAgents = append(ofAgents, promptquote.Span(v))
		}
	}
	return promptquote.Values(text, ofAgents)
}

// plain is a start whose prompt is as a command or a person gets it: that of a child may quote texts of agents.
func plain(start protocol.Start) protocol.Start {
	start.Prompt = promptquote.Plain(start.Prompt)
	return start
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
