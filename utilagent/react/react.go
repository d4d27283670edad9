// Package react is the loop of an agent: it asks a model, runs the tools that
// the model calls, shows it the results, and ends with the model's final answer:
// a text, or the arguments of a call of the tool "resolve".
//
// Invariants:
//   - every call is answered exactly once, in order, whatever is wrong with it;
//   - the last of the allowed replies is asked for without tools, so a run ends
//     with an answer wherever the model gives one;
//   - messages are saved and turns recorded as they happen: a killed run leaves
//     what it has done, and another process can go on with it;
//   - a conversation that fills the model's window goes on with the model's own
//     summary of what is left out; the task is never left out;
//   - a budget that is used up is no error: the run ends with what there is.
//
// The own time of a turn does not depend on how many there were before, except
// for writing the conversation out to the endpoint.
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
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Limits of a run.
const (
	DefaultTurns  = 30 // replies of the model
	maxNudges     = 3  // reminders to give a final text; they use up no turn
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

// Loop describes a run. Model is required.
type Loop struct {
	Model Model
	Tools *tools.Registry // nil: none
	Turns int             // replies of the model at most; 0: [DefaultTurns]
	// Budget ends a run before its turns do. Now is the clock for Budget.Time and
	// for the times in [Asked]; nil: there are none.
	Budget Budget
	Now    func() time.Time
	// Window is how many tokens the model can read; 0: unknown, so that nothing is
	// left out before the endpoint complains.
	Window int
	// ReadOnly refuses the tools that change anything. They stay declared, so
	// that the beginning of the conversation stays the same for the provider's
	// prompt cache.
	ReadOnly bool
	// Accept says what is wrong with a final text; nil accepts any. The error is
	// shown to the model.
	Accept func(text string) error
	// Resolve, if set, ends the run with a value instead of a text.
	Resolve *Resolve
	// Mail gives deliver what people tell the agent while it works, before each
	// question; nil: nobody does.
	Mail func(ctx context.Context, deliver func(ctx context.Context, text string) error) error
	// Record is given each turn as it happens; nil: not wanted.
	Record func(ctx context.Context, t protocol.Turn) error
	// Asked is told of each question when it was answered; nil: not wanted.
	Asked func(ctx context.Context, a Asked) error
	// Watch is called when a piece of a reply has come; see [llm.Request.Watch].
	Watch func(soFar func() llm.Message)
	// Redact hides secrets in what tools return and in what is recorded; nil:
	// there are none.
	Redact func(text string) string
}

// Outcome is how a run ended.
type Outcome string

// The outcomes. Only with Done is the answer one that Accept or Resolve took.
const (
	Done       Outcome = "ok"
	MaxTurns   Outcome = protocol.OutcomeMaxTurns  // no turns left
	MaxTokens  Outcome = protocol.OutcomeMaxTokens // the budget of tokens is used up
	MaxCost    Outcome = protocol.OutcomeMaxCost
	MaxTime    Outcome = protocol.OutcomeMaxTime
	Stuck      Outcome = "stuck"      // too many failed calls in a row
	Incomplete Outcome = "incomplete" // no acceptable text, in spite of reminders
)

// Answer is what a run led to.
type Answer struct {
	Text    string // the last that the model said
	Value   any    // what resolve was called with
	Outcome Outcome
	Bill    protocol.Bill // of its replies, without DurationMs; also set with an error
	Tokens  int64         // that count for the budget: where none are told, an estimate
	Model   string        // as the endpoint names it
}

// Asked is what became of one question.
type Asked struct {
	Number   int // within the run, from 1
	Messages int // in the conversation
	Final    bool
	Summary  bool   // it was for a summary of what is left out
	Room     string // what was left out of the conversation before; "": nothing
	Took     time.Duration
	Response llm.Response // without its message's texts if Err is set
	Err      error
}

// ErrEmpty means that the model said nothing, again and again.
var ErrEmpty = errors.New("the model gives empty replies")

// ErrRefused means that the model refuses the task; the error's text has its words.
var ErrRefused = errors.New("the model refuses")

// Run goes on with a session until the model has given its final answer. The
// session must end with a user message, or with the final answer itself: a run
// that was killed just then is not paid for twice. Errors: those of the model and the
// session, [ErrEmpty], [ErrRefused], [ErrCostUnknown], or the cause of ctx's end.
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

// Answered reports whether a session ends with a final text that the loop
// accepts.
func (l Loop) Answered(s *Session) bool {
	if l.Resolve != nil || len(s.Messages) == 0 {
		return false
	}
	last := s.Messages[len(s.Messages)-1]
	r := run{Loop: l}
	return last.Role == protocol.TurnAssistant && len(last.ToolCalls) == 0 && r.problem(last.Content, false) == nil
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
	took      time.Duration // for the last question
	left      int           // replies that may still be asked for
	nudges    int
	malformed int
	warned    bool
	stuck     bool
	why       Outcome // the limit for which the question in hand is the last; "": it is not
	room      string  // what was left out since the last question, for a person
	guard     guard
}

// declare lists the tools for the model.
func (r *run) declare() error {
	for _, s := range r.Tools.Specs() {
		r.declared = append(r.declared, llm.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	if r.Resolve == nil {
		return nil
	}
	if _, taken := r.Tools.Find(ResolveTool); taken {
		return fmt.Errorf("a tool is called %q: that is the name of the tool that ends the run", ResolveTool)
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

// atOnce is how many reading calls run side by side at most.
const atOnce = 8

// runCalls answers the calls of a reply, in order: those that only read side by
// side, all others one after the other. What the model must know about its limits is
// put into the last result: some endpoints refuse a user message after a tool's. It
// reports whether the run is over.
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

// next answers the first call, and those after it that can run beside it.
func (r *run) next(ctx context.Context, calls []llm.ToolCall, cut, final bool) ([]tools.Result, error) {
	if read := r.reading(calls); len(read) > 1 && !final {
		return r.sideBySide(ctx, read)
	}
	result, err := r.call(ctx, calls[0], cut, final)
	return []tools.Result{result}, err
}

// reading are the calls at the beginning of a list that may run side by side. A call
// that is there already must wait for the result of the first: see [guard].
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

// reading is a call that changes nothing.
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
			return nil, errs[i] // the end of ctx, the same for all
		}
		results[i].Text += r.guard.ran(c.key, results[i], false)
	}
	return results, nil
}

// call answers one call.
func (r *run) call(ctx context.Context, call llm.ToolCall, cut, final bool) (tools.Result, error) {
	args, err := llm.ParseArgs(call.Args)
	if err != nil {
		return r.guard.failed(malformed(err, cut)), nil
	}
	if r.Resolve != nil && r.isResolve(call.Name) {
		return r.resolved(ctx, args)
	}
	if final {
		return r.onlyResolve(call.Name), nil
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

// isResolve knows the tool by the names that models use for it.
func (r *run) isResolve(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == ResolveTool || strings.HasSuffix(name, "."+ResolveTool)
}

// malformed answers a call whose arguments make no sense.
func malformed(err error, cut bool) tools.Result {
	if cut {
		return tools.Failure("your reply was cut off at the limit for one reply, so this call was not run. Send it again with less text, for example a long file in parts")
	}
	return tools.Failure("%s", fmt.Sprintf("invalid JSON arguments: %v. Send the call again with valid JSON", err))
}

// turn asks for one reply and acts on it. It reports whether the run is over.
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
	r.why = r.lastRound() // for the last reply uses up another limit, too
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

// ask asks the model. A conversation that turns out too long for it is cut and
// asked again.
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
		resp, err := r.complete(ctx, req, Asked{Final: final})
		if !isTooLong(err) {
			return resp, err
		}
		if ok, failed := r.shrink(ctx); failed != nil || !ok {
			return resp, errors.Join(err, failed)
		}
	}
}

// complete asks the model, and reports it.
func (r *run) complete(ctx context.Context, req llm.Request, a Asked) (llm.Response, error) {
	began := r.clock()
	resp, err := r.Model.Complete(ctx, req)
	r.asked, r.took = r.asked+1, r.clock().Sub(began)
	if r.Asked == nil {
		return resp, err
	}
	a.Number, a.Messages, a.Took, a.Response, a.Err = r.asked, len(req.Messages), r.took, resp, err
	if !a.Summary {
		a.Room, r.room = r.room, ""
	}
	if err := r.Asked(context.WithoutCancel(ctx), a); err != nil {
		return llm.Response{}, err
	}
	return resp, err
}

func isTooLong(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == errorkind.Context
}

// usage is what the last reply cost, and how long it took.
func (r *run) usage(resp llm.Response) *protocol.Usage {
	usage := resp.Usage
	usage.DurationMs = r.took.Milliseconds()
	return &usage
}

// account adds what a reply cost.
func (r *run) account(resp llm.Response) error {
	if resp.Model != "" {
		r.answer.Model = resp.Model
	}
	if strings.TrimSpace(resp.Message.Content) != "" {
		r.answer.Text = resp.Message.Content
	}
	r.window.told(resp)
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
	case r.Resolve != nil: // every reply is a round here
	case r.nudges == maxNudges && r.answer.Text == "":
		return false, ErrEmpty
	case r.nudges == maxNudges:
		r.answer.Outcome = Incomplete
		return true, nil
	default:
		r.nudges++
		r.left++ // a reminder is not the model's turn
	}
	return false, r.keep(ctx, llm.User(r.nudge(text, problem)+r.notice()), nil)
}

// problem says why a text cannot be the final answer, nil if it can.
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
	s := fmt.Sprintf("Your reply is not a final answer: %v. If work is left, go on with the tools. ", problem)
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

// afterError lets the model correct a call that the endpoint refused to pass on.
// Every other error ends the run.
func (r *run) afterError(ctx context.Context, err error) error {
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ToolUse || r.malformed == maxMalformed || r.left <= 1 {
		return err
	}
	r.malformed++
	r.left--
	r.answer.Bill.Add(nil) // the model wrote it; nobody says what it cost
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
	l := r.line(r.clean(m), usage)
	if err := r.session.add(l); err != nil {
		return err
	}
	r.window.added(l.Message)
	return r.record(ctx, l.turn())
}

// line is a message with what is known about it.
func (r *run) line(m llm.Message, usage *protocol.Usage) line {
	l := line{Message: m, Usage: usage}
	if r.Now != nil {
		l.AtMs = r.Now().UnixMilli()
	}
	return l
}

func (r *run) record(ctx context.Context, t protocol.Turn) error {
	if r.Record == nil {
		return nil
	}
	// What has happened is recorded also when the run is being stopped.
	return r.Record(context.WithoutCancel(ctx), t)
}

// withoutTimes drops lengths of time ("1.2 s", "35ms"), which differ from one run
// of a command to the next. It looks at every result, so it is no regular
// expression: that takes ten times as long.
func withoutTimes(text string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(text); i++ {
		if !isDigit(text[i]) || i > 0 && isWord(text[i-1]) {
			continue
		}
		if n := spanLen(text[i:]); n > 0 {
			b.WriteString(text[kept:i])
			i += n - 1
			kept = i + 1
		}
	}
	if kept == 0 {
		return text
	}
	return b.String() + text[kept:]
}

// spanLen is the length of the span of time that a text begins with, 0 if it
// does not.
func spanLen(text string) int {
	i := digits(text)
	if i < len(text) && text[i] == '.' {
		if n := digits(text[i+1:]); n > 0 {
			i += 1 + n
		}
	}
	if i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	for _, unit := range []string{"ns", "µs", "ms", "s", "m", "h"} {
		rest, ok := strings.CutPrefix(text[i:], unit)
		if ok && (rest == "" || !isWord(rest[0])) {
			return i + len(unit)
		}
	}
	return 0
}

func digits(text string) int {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// clean is a message without secrets, in all its parts: it goes into the session
// file, back to the model, to tools and into the detail.
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
