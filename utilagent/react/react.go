// Package react is the loop of an agent: it asks a model, runs the tools that
// the model calls, shows it the results, and ends with the model's final text.
//
// Invariants:
//   - every call is answered exactly once, in order, whatever is wrong with it;
//   - the last of the allowed replies is asked for without tools, so a run ends
//     with an answer wherever the model gives one;
//   - messages are saved and turns recorded as they happen: a killed run leaves
//     what it has done.
//
// The exported API is provisional until the other own agents are built on it.
package react

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Limits of a run.
const (
	DefaultTurns  = 30 // replies of the model
	maxNudges     = 3  // reminders to give a final answer; they use up no turn
	warnTurns     = 3  // turns left when the model is told
	maxFailures   = 8  // failed calls in a row that end the use of tools
	maxMalformed  = 2  // calls that the endpoint itself refused
	repeatsToWarn = 3  // the same call with the same result
	repeatsToStop = 5
)

// Model is what the loop asks; an [llm.Client] is one.
type Model interface {
	Complete(ctx context.Context, req llm.Request) (llm.Response, error)
}

// Loop describes a run. Model and Tools are required.
type Loop struct {
	Model Model
	Tools *tools.Registry
	Turns int // replies of the model at most; 0: [DefaultTurns]
	// ReadOnly refuses the tools that change anything. They stay declared, so
	// that the beginning of the conversation stays the same for the provider's
	// prompt cache.
	ReadOnly bool
	// Accept says what is wrong with a final text; nil accepts any. The error is
	// shown to the model.
	Accept func(text string) error
	// Record is given each turn as it happens; nil: not wanted.
	Record func(ctx context.Context, t protocol.Turn) error
	// Redact hides secrets in what tools return; nil: there are none.
	Redact func(text string) string
}

// Outcome is how a run ended.
type Outcome string

// The outcomes. Only with Done is the text one that Accept took.
const (
	Done       Outcome = "ok"
	MaxTurns   Outcome = "max_turns"  // no turns left
	Stuck      Outcome = "stuck"      // too many failed calls in a row
	Incomplete Outcome = "incomplete" // no acceptable text, in spite of reminders
)

// Answer is what a run led to.
type Answer struct {
	Text    string // the last that the model said
	Outcome Outcome
	Usage   protocol.Usage // without DurationMs; also set with an error
	Model   string         // as the endpoint names it
}

// ErrEmpty means that the model said nothing, again and again.
var ErrEmpty = errors.New("the model gives empty replies")

// ErrRefused means that the model refuses the task; the error's text has its words.
var ErrRefused = errors.New("the model refuses")

// Run goes on with a session until the model has given its final answer. The
// session must end with a user message. Errors: those of the model and the
// session, [ErrEmpty], [ErrRefused], or the cause of ctx's end.
func (l Loop) Run(ctx context.Context, s *Session) (Answer, error) {
	r := &run{Loop: l, session: s, left: l.Turns, declared: declare(l.Tools)}
	if r.left <= 0 {
		r.left = DefaultTurns
	}
	for {
		done, err := r.turn(ctx)
		if err != nil || done {
			return r.answer, err
		}
	}
}

// run is the state of a run.
type run struct {
	Loop
	session  *Session
	declared []llm.Tool
	answer   Answer

	left      int // replies that may still be asked for
	nudges    int
	malformed int
	warned    bool
	stuck     bool
	guard     guard
}

// turn asks for one reply and acts on it. It reports whether the run is over.
func (r *run) turn(ctx context.Context) (done bool, err error) {
	final := r.left == 1 || r.stuck
	resp, err := r.Model.Complete(ctx, llm.Request{Messages: r.session.Messages, Tools: r.declared, NoCalls: final})
	if err != nil {
		return false, r.afterError(ctx, err)
	}
	r.left--
	r.answer.Usage = r.answer.Usage.Add(resp.Usage)
	if resp.Model != "" {
		r.answer.Model = resp.Model
	}
	m := resp.Message
	if strings.TrimSpace(m.Content) != "" {
		r.answer.Text = m.Content
	}
	if final {
		m.ToolCalls = nil // some endpoints return calls although none are allowed
	}
	if err := r.keep(ctx, m, &resp.Usage); err != nil {
		return false, err
	}
	if resp.Finish == llm.FinishRefusal {
		return false, fmt.Errorf("%w: %s", ErrRefused, m.Content)
	}
	if len(m.ToolCalls) > 0 {
		return false, r.runCalls(ctx, m.ToolCalls, resp.Finish == llm.FinishLength)
	}
	return r.judge(ctx, m.Content, resp.Finish == llm.FinishLength, final)
}

// judge decides whether a text is the final answer.
func (r *run) judge(ctx context.Context, text string, cut, final bool) (done bool, err error) {
	problem := r.problem(text, cut)
	if problem == nil {
		r.answer.Outcome = Done
		return true, nil
	}
	switch {
	case r.stuck:
		r.answer.Outcome = Stuck
	case final:
		r.answer.Outcome = MaxTurns
	case r.nudges == maxNudges && r.answer.Text == "":
		return false, ErrEmpty
	case r.nudges == maxNudges:
		r.answer.Outcome = Incomplete
	default:
		r.nudges++
		r.left++ // a reminder is not the model's turn
		return false, r.keep(ctx, llm.User(nudge(text, problem)), nil)
	}
	return true, nil
}

// problem says why a text cannot be the final answer, nil if it can.
func (r *run) problem(text string, cut bool) error {
	if cut {
		return errors.New("it was cut off at the limit for one reply; write a shorter one")
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("it is empty")
	}
	if r.Accept == nil {
		return nil
	}
	return r.Accept(text)
}

// nudge asks for a final answer.
func nudge(text string, problem error) string {
	s := fmt.Sprintf("Your reply is not a final answer: %v. If work is left, go on with the tools. If not, write the final answer now.", problem)
	if strings.Contains(text, "<tool_call>") || strings.Contains(text, "<function=") {
		s += " A tool call that is written as text is not run: use the tool interface."
	}
	return s
}

// afterError lets the model correct a call that the endpoint refused to pass on.
// Every other error ends the run.
func (r *run) afterError(ctx context.Context, err error) error {
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindToolUse || r.malformed == maxMalformed || r.left <= 1 {
		return err
	}
	r.malformed++
	r.left--
	said := e.Failed
	if said == "" {
		said = "(a malformed tool call)"
	}
	if err := r.keep(ctx, llm.Message{Role: protocol.TurnAssistant, Content: said}, nil); err != nil {
		return err
	}
	return r.keep(ctx, llm.User("Your tool call was malformed and was not run. Make it again: one of the declared tools, with arguments that are one JSON object."), nil)
}

// keep saves a message and records it as a turn.
func (r *run) keep(ctx context.Context, m llm.Message, usage *protocol.Usage) error {
	if err := r.session.Add(m); err != nil {
		return err
	}
	if r.Record == nil {
		return nil
	}
	t := protocol.Turn{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID, Usage: usage}
	for _, call := range m.ToolCalls {
		t.ToolCalls = append(t.ToolCalls, protocol.ToolCall{ID: call.ID, Name: call.Name, Args: recordedArgs(call)})
	}
	return r.Record(ctx, t)
}

// recordedArgs are a call's arguments as data, or as the model's text if they
// are none.
func recordedArgs(call llm.ToolCall) any {
	args, err := llm.ParseArgs(call.Args)
	if err != nil {
		return call.Args
	}
	return args
}

func declare(r *tools.Registry) []llm.Tool {
	var list []llm.Tool
	for _, s := range r.Specs() {
		list = append(list, llm.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return list
}
