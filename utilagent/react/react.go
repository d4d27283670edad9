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
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/protocol"
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
