package react

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
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

// guard detects a model that is stuck in a loop: the same call with the same result, a cycle of two to four
// calls with the same results, or only failures. A call whose result changes is not a loop, so polling is
// fine.
type guard struct {
	seen     map[string]*repeat
	recent   []made
	failures int // consecutive
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

// The maximum length of a cycle; the history is just long enough to detect repeatsToStop repetitions of it.
const (
	longestCircle = 4
	remembered    = longestCircle * repeatsToStop
)

// callKey returns a key that is equal for equivalent calls: JSON sorts the arguments.
func callKey(name string, args map[string]any) string {
	b, err := json.Marshal(args)
	if err != nil {
		return "" // cannot happen: args came from JSON
	}
	return strings.ToLower(name) + " " + string(b)
}

// refuse returns the reason for not running a call, or "".
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

// ran records a result and returns a warning for the model, or "". After a file was changed, reading anything
// again is fine, but changing it back and forth forever is not.
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

// circle returns the length of the shortest cycle of more than one call at the end of the history and its
// number of repetitions, or 0, 0.
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

// forget clears the history after results were removed from the conversation, because reading them again is
// not a loop.
func (g *guard) forget() { g.seen, g.recent = nil, nil }

// failed records a call that was not run.
func (g *guard) failed(result tools.Result) tools.Result {
	g.failures++
	return result
}
