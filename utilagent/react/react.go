// Package react implements the loop of an agent: it asks a model, runs the tools that the model calls, sends
// it the results, and ends with the model's final answer: a text, or the arguments of a call to the tool
// "resolve".
//
// Invariants:
//   - every call is answered exactly once, in order, even if it is invalid;
//   - the last allowed reply is requested without tools, so a run ends with an
//     answer if the model gives one;
//   - messages are saved and turns recorded immediately: a killed run leaves what it
//     has done, and another process can continue;
//   - a conversation that fills the model's context window continues with the model's
//     own summary of the removed part; the task is never removed;
//   - an exhausted budget is not an error: the run ends with the result so far.
package react

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Limits of a run.
const (
	DefaultTurns  = 30 // replies of the model
	maxNudges     = 3  // reminders to give a final text; they don't count as turns
	warnTurns     = 3  // remaining turns at which the model is warned
	maxFailures   = 8  // consecutive failed calls after which tools are disabled
	maxMalformed  = 2  // calls rejected by the endpoint
	repeatsToWarn = 3  // equal calls with equal results
	repeatsToStop = 5
)

// Model answers requests; [llm.Client] implements it.
type Model interface {
	Complete(ctx context.Context, req llm.Request) (llm.Response, error)
}

// Loop describes a run. Model is required.
type Loop struct {
	Model Model
	Tools *tools.Registry // nil for none
	Turns int             // maximum replies of the model; default [DefaultTurns]
	// Budget can end a run before Turns does. Now is the clock for Budget.Time and for the times in [Asked];
	// nil disables both.
	Budget Budget
	Now    func() time.Time
	// Window is the model's context window in tokens. If 0, nothing is removed before the endpoint complains.
	Window int
	// ReadOnly rejects tools that change anything. They stay declared, so that the start of the conversation
	// stays the same for the provider's prompt cache.
	ReadOnly bool
	// Accept returns an error if a final text is unacceptable; the error is shown to the model. Nil accepts
	// any text.
	Accept func(text string) error
	// Resolve, if set, ends the run with a value instead of a text.
	Resolve *Resolve
	// Mail, if not nil, delivers messages from people before each request.
	Mail func(ctx context.Context, deliver func(ctx context.Context, text string) error) error
	// Record, if not nil, is called for each turn.
	Record func(ctx context.Context, t protocol.Turn) error
	// OnExchange, if not nil, is called after each request.
	OnExchange func(ctx context.Context, a Exchange) error
	// Watch is called for each piece of a reply; see [llm.Request.Watch].
	Watch func(soFar func() llm.Message)
	// Redact, if not nil, hides secrets in tool results and recorded turns.
	Redact func(text string) string
}

// Outcome is the outcome of a run.
type Outcome string

// Outcomes. Only with Done was the answer accepted by Accept or Resolve.
const (
	Done       Outcome = "ok"
	MaxTurns   Outcome = protocol.OutcomeMaxTurns  // no turns left
	MaxTokens  Outcome = protocol.OutcomeMaxTokens // the token budget is used up
	MaxCost    Outcome = protocol.OutcomeMaxCost
	MaxTime    Outcome = protocol.OutcomeMaxTime
	Stuck      Outcome = "stuck"      // too many consecutive failed calls
	Incomplete Outcome = "incomplete" // no acceptable text in spite of reminders
)

// Answer is the result of a run.
type Answer struct {
	Text    string // the model's last text
	Cut     bool   // Text was cut off at the limit for one reply
	Value   any    // the argument of resolve
	Outcome Outcome
	Bill    protocol.Bill // of its replies, without DurationMs; also set with an error
	Tokens  int64         // tokens counted against the budget, estimated if not reported
	Model   string        // as reported by the endpoint
}

// Exchange describes one request and its result.
type Exchange struct {
	Number   int // within the run, from 1
	Messages int // in the conversation
	Final    bool
	Summary  bool   // a request for a summary of removed messages
	Room     string // what was removed from the conversation before, or ""
	Took     time.Duration
	Response llm.Response // without its message's texts if Err is set
	Err      error
}

// ErrEmpty reports that the model repeatedly gave empty replies.
var ErrEmpty = errors.New("the model gives empty replies")

// ErrRefused reports that the model refused the task; the error's text quotes it.
var ErrRefused = errors.New("the model refuses")

// Run continues a session until the model has given its final answer. The session must end with a user
// message, or with the final answer itself, so that a run killed at that point is not paid for twice. It
// returns errors of the model and the session, [ErrEmpty], [ErrRefused], [ErrCostUnknown], or ctx's cause.
func (l Loop) Run(ctx context.Context, s *Session) (Answer, error) {
	r := &run{Loop: l, session: s, left: l.Turns}
	if r.left <= 0 {
		r.left = DefaultTurns
	}
	if r.Tools == nil {
		r.Tools = &tools.Registry{}
	}
	if err := r.declare(); err != nil {
		return Answer{}, err
	}
	if l.Answered(s) {
		r.answer.Text, r.answer.Outcome = s.Messages[len(s.Messages)-1].Content, Done
		return r.answer, nil
	}
	r.window.begin(s, l.Window, r.declared)
	r.spent.begin(r.clock())
	ctx, stop := r.deadline(ctx)
	defer stop()
	for {
		done, err := r.turn(ctx)
		if errors.Is(err, errTimeIsUp) {
			r.answer.Outcome = MaxTime
			return r.answer, nil
		}
		if err != nil || done {
			return r.answer, err
		}
	}
}

// Answered reports whether a session ends with a final text that the loop accepts.
func (l Loop) Answered(s *Session) bool {
	if l.Resolve != nil || len(s.Messages) == 0 {
		return false
	}
	last := s.Messages[len(s.Messages)-1]
	r := run{Loop: l}
	return last.Role == protocol.TurnAssistant && len(last.ToolCalls) == 0 && r.problem(last.Content, s.cut) == nil
}

// run is the state of a run.
type run struct {
	Loop
	session  *Session
	declared []llm.Tool
	answer   Answer
	window   window
	spent    spent

	asked     int
	took      time.Duration // duration of the last request
	left      int           // remaining replies
	nudges    int
	malformed int
	warned    bool
	stuck     bool
	why       Outcome // the limit that makes the current request the last, or ""
	room      string  // what was removed since the last request, for display
	guard     guard
}

// declare builds the tool declarations for the model.
func (r *run) declare() error {
	for _, s := range r.Tools.Specs() {
		r.declared = append(r.declared, llm.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	if r.Resolve == nil {
		return nil
	}
	if _, taken := r.Tools.Find(ResolveTool); taken {
		return fmt.Errorf("tool name %q is reserved for the tool that ends the run", ResolveTool)
	}
	r.declared = append(r.declared, r.Resolve.tool())
	return nil
}

func (r *run) clock() time.Time {
	if r.Now == nil {
		return time.Time{}
	}
	return r.Now()
}

// atOnce bounds how many read-only calls run concurrently.
const atOnce = 8

// runCalls answers the calls of a reply, in order: consecutive read-only calls run concurrently, all others
// one by one. Warnings about limits are appended to the last result, because some endpoints reject a user
// message after a tool's. It reports whether the run is over.
func (r *run) runCalls(ctx context.Context, calls []llm.ToolCall, cut, final bool) (done bool, err error) {
	for at := 0; at < len(calls); {
		results, err := r.next(ctx, calls[at:], cut, final)
		if err != nil {
			return false, err
		}
		for _, result := range results {
			text := result.Text
			if r.Redact != nil {
				text = r.Redact(text)
			}
			text = r.window.clip(text, len(calls))
			if at == len(calls)-1 && r.answer.Outcome == "" {
				text += r.notice()
			}
			if err := r.keep(ctx, llm.ToolResult(calls[at].ID, text), nil); err != nil {
				return false, err
			}
			at++
		}
	}
	if r.answer.Outcome == "" && final {
		r.answer.Outcome = r.why
	}
	return r.answer.Outcome != "", nil
}

// next answers the first call and those after it that can run concurrently.
func (r *run) next(ctx context.Context, calls []llm.ToolCall, cut, final bool) ([]tools.Result, error) {
	if read := r.reading(calls); len(read) > 1 && !final && !(cut && len(read) == len(calls)) {
		return r.sideBySide(ctx, read)
	}
	result, err := r.call(ctx, calls[0], cut && len(calls) == 1, final)
	return []tools.Result{result}, err
}

// reading returns the leading calls that can run concurrently. A duplicate must wait for the first one's
// result: see [guard].
func (r *run) reading(calls []llm.ToolCall) (list []reading) {
	for _, call := range calls[:min(len(calls), atOnce)] {
		args, err := llm.ParseArgs(call.Args)
		tool, known := r.Tools.Find(call.Name)
		if err != nil || !known || tool.Spec().Effect != tools.Reads || !tool.Spec().SideBySide {
			break
		}
		key := callKey(call.Name, args)
		if r.guard.refuse(key) != "" || slices.ContainsFunc(list, func(c reading) bool { return c.key == key }) {
			break
		}
		list = append(list, reading{call.Name, key, args})
	}
	return list
}

// reading is a read-only call.
type reading struct {
	name, key string
	args      map[string]any
}

func (r *run) sideBySide(ctx context.Context, calls []reading) ([]tools.Result, error) {
	results, errs := make([]tools.Result, len(calls)), make([]error, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { results[i], errs[i] = r.Tools.Call(ctx, c.name, c.args) })
	}
	all.Wait()
	for i, c := range calls {
		if errs[i] != nil {
			return nil, errs[i] // ctx's cause, the same for all
		}
		results[i].Text += r.guard.ran(c.key, results[i], false)
	}
	return results, nil
}

// call answers one call.
func (r *run) call(ctx context.Context, call llm.ToolCall, cut, final bool) (tools.Result, error) {
	args, err := llm.ParseArgs(call.Args)
	if err != nil || cut { // some endpoints close the arguments of a call that was cut off
		return r.guard.failed(malformed(err, cut)), nil
	}
	if r.Resolve != nil && r.isResolve(call.Name) {
		return r.resolved(ctx, args)
	}
	if final {
		return r.guard.failed(tools.Failure("%.80q was not run: the only call that is still possible is %s", call.Name,
			ResolveTool)), nil
	}
	tool, known := r.Tools.Find(call.Name)
	if known && r.ReadOnly && tool.Spec().Effect != tools.Reads {
		return r.guard.failed(tools.Failure("only reading is possible now, so %s was not run. Write the final answer", call.Name)), nil
	}
	key := callKey(call.Name, args)
	if why := r.guard.refuse(key); why != "" {
		return r.guard.failed(tools.Failure("%s", why)), nil
	}
	result, err := r.Tools.Call(ctx, call.Name, args)
	if err != nil {
		return tools.Result{}, err
	}
	writes := known && tool.Spec().Effect == tools.Writes
	result.Text += r.guard.ran(key, result, writes)
	return result, nil
}

// isResolve recognizes the tool under the names that models use for it.
func (r *run) isResolve(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == ResolveTool || strings.HasSuffix(name, "."+ResolveTool)
}

// malformed answers a call with invalid arguments.
func malformed(err error, cut bool) tools.Result {
	if cut {
		return tools.Failure("your reply was cut off at the limit for one reply, so this call was not run. Send it again with less text, for example a long file in parts")
	}
	return tools.Failure("%s", fmt.Sprintf("invalid JSON arguments: %v. Send the call again with valid JSON", err))
}

// turn requests one reply and handles it. It reports whether the run is over.
func (r *run) turn(ctx context.Context) (done bool, err error) {
	if used := r.usedUp(); used != "" {
		r.answer.Outcome = used
		return true, nil
	}
	if r.Mail != nil {
		err := r.Mail(ctx, func(ctx context.Context, text string) error { return r.keep(ctx, llm.User(text), nil) })
		if err != nil {
			return false, err
		}
	}
	r.why = r.lastRound() // waiting for the last reply can exhaust another limit
	final := r.why != ""
	resp, err := r.ask(ctx, final)
	if err != nil {
		r.charge(resp)
		return false, r.afterError(ctx, err)
	}
	r.left--
	resp.Message = r.clean(resp.Message)
	if err := r.account(resp); err != nil {
		return false, err
	}
	m := resp.Message
	if final && r.Resolve == nil {
		m.ToolCalls = nil // some endpoints return calls although none are allowed
	}
	if err := r.keep(ctx, m, r.usage(resp)); err != nil {
		return false, err
	}
	if resp.Finish == llm.FinishRefusal {
		return false, fmt.Errorf("%w: %s", ErrRefused, m.Content)
	}
	if len(m.ToolCalls) > 0 {
		return r.runCalls(ctx, m.ToolCalls, resp.Finish == llm.FinishLength, final)
	}
	return r.judge(ctx, m.Content, resp.Finish == llm.FinishLength, final)
}

// ask asks the model. If the conversation turns out to be too long, it is shortened and sent again.
func (r *run) ask(ctx context.Context, final bool) (llm.Response, error) {
	req := llm.Request{Tools: r.declared, NoCalls: final && r.Resolve == nil, Watch: r.Watch}
	if final && r.Resolve != nil {
		req.Force = ResolveTool
	}
	if err := r.makeRoom(ctx); err != nil {
		return llm.Response{}, err
	}
	for {
		req.Messages = r.session.Messages
		resp, err := r.complete(ctx, req, Exchange{Final: final})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != errorkind.Context {
			return resp, err
		}
		if ok, failed := r.shrink(ctx); failed != nil || !ok {
			return resp, errors.Join(err, failed)
		}
	}
}

// complete asks the model and reports the request.
func (r *run) complete(ctx context.Context, req llm.Request, a Exchange) (llm.Response, error) {
	began := r.clock()
	resp, err := r.Model.Complete(ctx, req)
	r.asked, r.took = r.asked+1, r.clock().Sub(began)
	if r.OnExchange == nil {
		return resp, err
	}
	a.Number, a.Messages, a.Took, a.Response, a.Err = r.asked, len(req.Messages), r.took, resp, err
	if !a.Summary {
		a.Room, r.room = r.room, ""
	}
	if err := r.OnExchange(context.WithoutCancel(ctx), a); err != nil {
		return llm.Response{}, err
	}
	return resp, err
}

// usage returns the usage of the last reply, with its duration.
func (r *run) usage(resp llm.Response) *protocol.Usage {
	usage := resp.Usage
	usage.DurationMs = r.took.Milliseconds()
	return &usage
}

// account adds the cost of a reply.
func (r *run) account(resp llm.Response) error {
	if resp.Model != "" {
		r.answer.Model = resp.Model
	}
	if strings.TrimSpace(resp.Message.Content) != "" {
		r.answer.Text, r.answer.Cut = resp.Message.Content, resp.Finish == llm.FinishLength
	}
	r.window.recordResponse(resp)
	r.charge(resp)
	if r.Budget.CostUSD > 0 && r.spent.lastCost == nil && !r.Budget.CostIfKnown {
		return ErrCostUnknown
	}
	return nil
}

// judge decides whether a text is the final answer.
func (r *run) judge(ctx context.Context, text string, cut, final bool) (done bool, err error) {
	problem := r.problem(text, cut)
	if problem == nil {
		r.answer.Outcome = Done
		return true, nil
	}
	switch {
	case final:
		r.answer.Outcome = r.why
		return true, nil
	case r.Resolve != nil: // here every reply counts as a turn
	case r.nudges == maxNudges && r.answer.Text == "":
		return false, ErrEmpty
	case r.nudges == maxNudges:
		r.answer.Outcome = Incomplete
		return true, nil
	default:
		r.nudges++
		r.left++ // a reminder does not count as a turn
	}
	return false, r.keep(ctx, llm.User(r.nudge(text, problem)+r.notice()), nil)
}

// problem returns the reason why a text cannot be the final answer, or nil.
func (r *run) problem(text string, cut bool) error {
	switch {
	case cut:
		return errors.New("it was cut off at the limit for one reply; write a shorter one")
	case strings.TrimSpace(text) == "":
		return errors.New("it is empty")
	case r.Resolve != nil:
		return errors.New("a text ends nothing here")
	case r.Accept == nil:
		return nil
	}
	return r.Accept(text)
}

// nudge asks for a final answer.
func (r *run) nudge(text string, problem error) string {
	s := fmt.Sprintf("Your reply is not a final answer: %v. If work is left, continue with the tools. ", problem)
	if r.Resolve == nil {
		s += "If not, write the final answer now."
	} else {
		s += fmt.Sprintf("If not, call the tool `%s` with the final output now.", ResolveTool)
	}
	if strings.Contains(text, "<tool_call>") || strings.Contains(text, "<function=") {
		s += " A tool call that is written as text is not run: use the tool interface."
	}
	return s
}

// afterError lets the model correct a call that the endpoint rejected. Any other error ends the run.
func (r *run) afterError(ctx context.Context, err error) error {
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ToolUse || r.malformed == maxMalformed || r.left <= 1 {
		return err
	}
	r.malformed++
	r.left--
	r.answer.Bill.Add(nil) // the reply was paid for, but its cost is unknown
	said := e.Failed
	if said == "" {
		said = "(a malformed tool call)"
	}
	if err := r.keep(ctx, llm.Message{Role: protocol.TurnAssistant, Content: said}, nil); err != nil {
		return err
	}
	return r.keep(ctx, llm.User("Your tool call was malformed and was not run. Repeat it with a declared tool and "+
		"a JSON object as arguments."), nil)
}

// keep saves a message and records it as a turn.
func (r *run) keep(ctx context.Context, m llm.Message, usage *protocol.Usage) error {
	l := r.line(r.clean(m), usage)
	if err := r.session.add(l); err != nil {
		return err
	}
	r.window.added(l.Message)
	return r.record(ctx, l.turn())
}

// line returns a message as a line of the session file.
func (r *run) line(m llm.Message, usage *protocol.Usage) line {
	l := line{Message: m, Usage: usage, Cut: r.answer.Cut && m.Role == protocol.TurnAssistant}
	if r.Now != nil {
		l.AtMs = r.Now().UnixMilli()
	}
	return l
}

func (r *run) record(ctx context.Context, t protocol.Turn) error {
	if r.Record == nil {
		return nil
	}
	// Record it even if the run is being stopped.
	return r.Record(context.WithoutCancel(ctx), t)
}

// times matches durations ("1.2 s", "35ms"), which differ between runs of the same command.
var times = lazyregexp.New(`\b\d+(\.\d+)?[ \t]?(ns|µs|ms|s|m|h)\b`)

func withoutTimes(text string) string { return times().ReplaceAllString(text, "") }

// clean returns a message with secrets hidden in all its parts, because it goes to the session file, the
// model, tools and the detail.
func (r *run) clean(m llm.Message) llm.Message {
	if r.Redact == nil {
		return m
	}
	m.Content, m.Reasoning, m.ToolCallID = r.Redact(m.Content), r.Redact(m.Reasoning), r.Redact(m.ToolCallID)
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i, call := range m.ToolCalls {
		call.ID, call.Name, call.Args = r.Redact(call.ID), r.Redact(call.Name), r.Redact(call.Args)
		call.Extra = r.cleanExtra(call.Extra)
		m.ToolCalls[i] = call
	}
	m.Extra = r.cleanExtra(m.Extra)
	return m
}

func (r *run) cleanExtra(extra map[string]json.RawMessage) map[string]json.RawMessage {
	extra = maps.Clone(extra)
	for name, value := range extra {
		extra[name] = json.RawMessage(r.Redact(string(value)))
	}
	return extra
}
