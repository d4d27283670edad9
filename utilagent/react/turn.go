package react

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
)

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
	return errors.As(err, &e) && e.Kind == llm.KindContext
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
	if !errors.As(err, &e) || e.Kind != llm.KindToolUse || r.malformed == maxMalformed || r.left <= 1 {
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
