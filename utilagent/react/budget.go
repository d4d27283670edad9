package react

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// Budget limits a run; a zero field means no limit. The last request is made when just one more of the same
// size fits, so a run can exceed its budget by the difference between two replies. Only Time is a hard limit:
// it can expire during a request or a tool, which is then stopped.
type Budget struct {
	Tokens  int64 // input and output, including cached tokens
	CostUSD float64
	Time    time.Duration
	// CostIfKnown disables CostUSD if the endpoint reports no cost.
	CostIfKnown bool
}

// ErrCostUnknown reports that a cost budget cannot be enforced, because the endpoint has reported no cost.
var ErrCostUnknown = errors.New("the cost is limited but unknown")

var errTimeIsUp = errors.New("the run's time limit is reached")

// The fractions of the time after which the model is warned, and after which it must answer.
const (
	warnShare = 0.8
	lastShare = 0.9
)

// spent holds the resources that a run has used.
type spent struct {
	started    time.Time
	tokens     int64
	cost       float64
	lastTokens int64    // tokens of the last request
	lastCost   *float64 // cost of the last request with a known cost, or nil
}

func (s *spent) begin(now time.Time) { s.started = now }

// deadline returns a context that is cancelled when the time is up.
func (r *run) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Budget.Time <= 0 || r.Now == nil {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, r.Budget.Time, errTimeIsUp)
}

// charge adds the cost of a request, including failed tries. For the budget only, missing token counts are
// estimated, and a reply of unknown cost counts as much as the previous one.
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

// usedUp returns the limit that leaves no room for another request, or "".
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

// lastRound returns the limit that makes the next request the last, or "".
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

// timeUsed returns the fraction of the time that has passed.
func (r *run) timeUsed() float64 {
	if r.Now == nil || r.Budget.Time <= 0 {
		return 0
	}
	return float64(r.Now().Sub(r.spent.started)) / float64(r.Budget.Time)
}

// notice returns what the model must know before its next reply, or "".
func (r *run) notice() string {
	if r.guard.failures >= maxFailures {
		r.stuck = true
		return fmt.Sprintf("\n[%d calls in a row have failed. No more tools: %s Describe the obstacle in it.]", r.guard.failures, r.demand())
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
	return text + "Finish now and give the final answer. If the work cannot be finished, explain it there.]"
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

// scarce reports whether most of a limit is used.
func (r *run) scarce() bool {
	b, s := r.Budget, r.spent
	return b.Tokens > 0 && float64(s.tokens) >= warnShare*float64(b.Tokens) ||
		b.CostUSD > 0 && s.cost >= warnShare*b.CostUSD ||
		b.Time > 0 && r.timeUsed() >= warnShare
}
