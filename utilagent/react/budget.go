package react

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Budget is what a run may use; a zero field is no limit. The last question is
// asked when just one more of the same size fits, so a run may go over by what
// one reply is longer than the one before. Time alone is a hard limit: it may run
// out within a question or a tool, which is then ended.
type Budget struct {
	Tokens  int64 // read and written, cached ones included
	CostUSD float64
	Time    time.Duration
	// CostIfKnown: where the endpoint reports no cost, CostUSD is no limit.
	CostIfKnown bool
}

// ErrCostUnknown means that a budget of cost cannot be kept: the endpoint has not
// reported the cost of any reply.
var ErrCostUnknown = errors.New("there is a budget of cost, but the cost is unknown")

var errTimeIsUp = errors.New("the time of the run is up")

// The share of the time after which the model is warned, and that after which
// it is to answer.
const (
	warnShare = 0.8
	lastShare = 0.9
)

// spent is what a run has used.
type spent struct {
	began      time.Time
	tokens     int64
	cost       float64
	lastTokens int64    // of the last question
	lastCost   *float64 // of the last question whose cost is known; nil: none yet
}

func (s *spent) begin(now time.Time) { s.began = now }

// deadline ends ctx when the time is up.
func (r *run) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Budget.Time <= 0 || r.Now == nil {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, r.Budget.Time, errTimeIsUp)
}

// charge adds what a question cost, with the replies that were of no use. For the
// budget, and for it alone, tokens that the endpoint does not count are estimated,
// and a reply of unknown cost counts as much as the last one before it.
func (r *run) charge(resp llm.Response) {
	for _, f := range resp.Failures {
		if f.Usage.Turns > 0 {
			r.pay(f.Usage, llm.Message{})
		}
	}
	if resp.Usage.Turns > 0 {
		r.pay(resp.Usage, resp.Message)
	}
}

func (r *run) pay(u protocol.Usage, m llm.Message) {
	r.answer.Bill.Add(&u)
	r.spent.lastTokens = u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens + u.OutputTokens
	if r.spent.lastTokens == 0 {
		r.spent.lastTokens = int64(r.window.tokens() + sizeOf(m)/charsPerToken)
	}
	r.spent.tokens += r.spent.lastTokens
	r.answer.Tokens = r.spent.tokens
	if u.CostUSD != nil {
		r.spent.lastCost = u.CostUSD
	}
	if r.spent.lastCost != nil {
		r.spent.cost += *r.spent.lastCost
	}
}

// usedUp is the budget that leaves no room for even one more question, "" if
// none does.
func (r *run) usedUp() Outcome {
	b, s := r.Budget, r.spent
	switch {
	case b.Tokens > 0 && s.tokens >= b.Tokens:
		return MaxTokens
	case b.CostUSD > 0 && s.cost >= b.CostUSD:
		return MaxCost
	case b.Time > 0 && r.timeUsed() >= 1:
		return MaxTime
	}
	return ""
}

// lastRound is why the next question is the last, "" if it is not.
func (r *run) lastRound() Outcome {
	b, s := r.Budget, r.spent
	switch {
	case r.stuck:
		return Stuck
	case r.left <= 1:
		return MaxTurns
	case b.Tokens > 0 && s.tokens+2*s.lastTokens > b.Tokens:
		return MaxTokens
	case b.CostUSD > 0 && s.lastCost != nil && s.cost+2*(*s.lastCost) > b.CostUSD:
		return MaxCost
	case b.Time > 0 && r.timeUsed() >= lastShare:
		return MaxTime
	}
	return ""
}

// timeUsed is the share of the time that has passed.
func (r *run) timeUsed() float64 {
	if r.Now == nil || r.Budget.Time <= 0 {
		return 0
	}
	return float64(r.Now().Sub(r.spent.began)) / float64(r.Budget.Time)
}

// notice is what the model must know before its next reply, "" if there is
// nothing.
func (r *run) notice() string {
	if r.guard.failures >= maxFailures {
		r.stuck = true
		return fmt.Sprintf("\n[%d calls in a row have failed. No more tools: %s Say in it what stands in the way.]", r.guard.failures, r.demand())
	}
	if why := r.lastRound(); why != "" {
		return fmt.Sprintf("\n[%s: %s]", lastWords[why], r.demand())
	}
	if r.warned {
		return ""
	}
	text := ""
	switch {
	case r.left <= warnTurns:
		text = fmt.Sprintf("\n[%d replies left. ", r.left)
	case r.scarce():
		text = "\n[Most of the budget for this task is used up. "
	default:
		return ""
	}
	r.warned = true
	return text + "Come to an end and give the final answer. If the work cannot be finished, say so in it.]"
}

var lastWords = map[Outcome]string{
	MaxTurns: "No more tools", MaxTokens: "The budget of tokens is used up. No more tools",
	MaxCost: "The budget of cost is used up. No more tools", MaxTime: "The time is up. No more tools",
}

// demand asks for the final answer.
func (r *run) demand() string {
	if r.Resolve != nil {
		return fmt.Sprintf("your next reply must be a call of `%s` with the final output.", ResolveTool)
	}
	return "your next reply must be the final answer."
}

// scarce reports that most of a budget is used.
func (r *run) scarce() bool {
	b, s := r.Budget, r.spent
	return b.Tokens > 0 && float64(s.tokens) >= warnShare*float64(b.Tokens) ||
		b.CostUSD > 0 && s.cost >= warnShare*b.CostUSD ||
		b.Time > 0 && r.timeUsed() >= warnShare
}

// guard notices a model that goes in circles: the same call with the same
// result, two to four calls in turn with the same results, or nothing but
// failures. A call whose result changes is no circle, so polling is fine.
type guard struct {
	seen     map[string]*repeat
	recent   []made
	failures int // in a row
}

type repeat struct {
	result [sha256.Size]byte
	times  int
}

// made is a call with its result.
type made struct {
	key    string
	result [sha256.Size]byte
}

// A circle has at most this many calls; what is remembered is just enough to
// see it turn repeatsToStop times.
const (
	longestCircle = 4
	remembered    = longestCircle * repeatsToStop
)

// callKey is the same for calls that mean the same: JSON sorts the arguments.
func callKey(name string, args map[string]any) string {
	b, err := json.Marshal(args)
	if err != nil {
		return "" // cannot happen: args came from JSON
	}
	return strings.ToLower(name) + " " + string(b)
}

// refuse says why a call is not run, "" if it is.
func (g *guard) refuse(key string) string {
	if r := g.seen[key]; r != nil && r.times >= repeatsToStop-1 {
		return fmt.Sprintf("not run: this same call has had the same result %d times. Do something else, or give the final answer", r.times)
	}
	n, times := g.circle()
	if times >= repeatsToStop-1 && slices.ContainsFunc(g.recent[len(g.recent)-n:], func(m made) bool { return m.key == key }) {
		return fmt.Sprintf("not run: the same %d calls in turn have had the same results %d times. Do something else, or give the final answer", n, times)
	}
	return ""
}

// ran notes a result and returns what the model should be told about it. A file
// that was changed is a reason to look at anything again, but not to change it
// there and back for ever.
func (g *guard) ran(key string, result tools.Result, writes bool) string {
	if result.Failed {
		g.failures++
	} else {
		g.failures = 0
	}
	if g.seen == nil || writes && !result.Failed {
		kept := g.seen[key]
		g.seen = map[string]*repeat{}
		if kept != nil {
			g.seen[key] = kept
		}
	}
	sum := sha256.Sum256([]byte(withoutTimes(result.Text)))
	r := g.seen[key]
	if r == nil || r.result != sum {
		r = &repeat{result: sum}
		g.seen[key] = r
	}
	r.times++
	if g.recent = append(g.recent, made{key, sum}); len(g.recent) > remembered {
		g.recent = append(g.recent[:0], g.recent[len(g.recent)-remembered:]...)
	}
	if r.times >= repeatsToWarn {
		return fmt.Sprintf("\n[The same call with the same result for the %d. time: try something else.]", r.times)
	}
	if n, times := g.circle(); times >= repeatsToWarn {
		return fmt.Sprintf("\n[The same %d calls in turn with the same results for the %d. time: you are going in a circle. Try something else.]", n, times)
	}
	return ""
}

// circle is the shortest circle of more than one call that the recent calls end
// with, and how often it was made; 0, 0 if there is none.
func (g *guard) circle() (n, times int) {
	for n = 2; n <= longestCircle; n++ {
		same := 0
		for i := len(g.recent) - 1; i >= n && g.recent[i] == g.recent[i-n]; i-- {
			same++
		}
		if times = (same + n) / n; times >= repeatsToWarn {
			return n, times
		}
	}
	return 0, 0
}

// forget is for when results were left out of the conversation: to look again at what
// is not there any more is no circle.
func (g *guard) forget() { g.seen, g.recent = nil, nil }

// failed notes a call that was not run.
func (g *guard) failed(result tools.Result) tools.Result {
	g.failures++
	return result
}

// line is a line of a session file: a message, or what was left out of those
// before it, or the mark behind what a step began with. The messages themselves
// stay in the file.
type line struct {
	llm.Message
	AtMs  int64           `json:"atMs,omitempty"`  // when it was said
	Usage *protocol.Usage `json:"usage,omitempty"` // of the reply
	Room  *room           `json:"room,omitempty"`
	Begun bool            `json:"begun,omitempty"`
}

const begunLine = `{"begun":true}` + "\n"

func encodeLine(l line) ([]byte, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return append(b, '\n'), nil
}

// read takes the lines of a file and returns how many bytes of it make sense.
func (s *Session) read(file []byte) (good int) {
	begun := false
	for b := range bytes.Lines(file) {
		var l line
		if !bytes.HasSuffix(b, []byte("\n")) || json.Unmarshal(b, &l) != nil {
			break
		}
		switch {
		case l.Begun:
			begun, s.Unfinished, s.Spent = true, nil, protocol.Bill{}
		case l.Room != nil:
			messages, ok := l.Room.apply(s.Messages)
			if !ok {
				return good
			}
			s.Messages = messages
			if turn, ok := l.summaryTurn(); ok && begun {
				s.Unfinished = append(s.Unfinished, turn)
				l.cost(&s.Spent)
			}
		default:
			s.Messages = append(s.Messages, l.Message)
			if begun {
				s.Unfinished = append(s.Unfinished, l.turn())
				if l.Role == protocol.TurnAssistant {
					l.cost(&s.Spent)
				}
			}
		}
		good += len(b)
	}
	return good
}

// turn is a message as a turn.
func (l line) turn() protocol.Turn {
	t := protocol.Turn{
		Role: l.Role, Content: l.Content, Reasoning: l.Reasoning, ToolCallID: l.ToolCallID, AtMs: l.AtMs,
	}
	if l.Usage != nil {
		t.Usage = l.Usage.IfKnown()
	}
	for _, call := range l.ToolCalls {
		t.ToolCalls = append(t.ToolCalls, protocol.ToolCall{ID: call.ID, Name: call.Name, Args: recordedArgs(call)})
	}
	return t
}

// summaryTurn is the summary as the model is told it, with what it cost; ok is false
// where there is none.
func (l line) summaryTurn() (t protocol.Turn, ok bool) {
	if l.Room == nil || l.Room.Summary == "" {
		return t, false
	}
	l.Message = l.Room.stand()
	return l.turn(), true
}

// cost adds what a reply cost.
func (l line) cost(b *protocol.Bill) {
	if l.Usage == nil {
		b.Add(nil)
		return
	}
	b.Add(l.Usage.IfKnown())
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
