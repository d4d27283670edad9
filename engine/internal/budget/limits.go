// Package budget has the sums of what a run has cost, and the limits that hold it. It
// decides nothing about threads.
package budget

import (
	"fmt"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// said adds what people have said of a thread's limits to those of its workflow.
func With(l protocol.Limits, own *heads.Limits) protocol.Limits {
	if own == nil {
		return l
	}
	if own.MaxCostUSD > 0 {
		l.MaxCostUSD = own.MaxCostUSD
	}
	if own.MaxTokens > 0 {
		l.MaxTokens = own.MaxTokens
	}
	if own.MaxTimeMs > 0 {
		l.MaxTimeMs = own.MaxTimeMs
	}
	return l
}

// Granted adds what was granted beyond limits.
func Granted(l protocol.Limits, own *heads.Limits) protocol.Limits {
	if own == nil {
		return l
	}
	if l.MaxCostUSD > 0 {
		l.MaxCostUSD = protocol.RoundUSD(l.MaxCostUSD + own.More.CostUSD)
	}
	if l.MaxTokens > 0 {
		l.MaxTokens += own.More.Tokens
	}
	if l.MaxTimeMs > 0 {
		l.MaxTimeMs += own.More.TimeMs
	}
	return l
}

// Bounded reports whether limits are of what a run costs.
func Bounded(l protocol.Limits) bool { return l.MaxCostUSD > 0 || l.MaxTokens > 0 || l.MaxTimeMs > 0 }

// SpentOf is a sum as limits count it.
func SpentOf(s Sums) moderator.Spent {
	out := moderator.Spent{TimeMs: s.DurationMs, Unpriced: s.Unpriced, Uncounted: s.Uncounted, Blind: s.Blind}
	if s.Usage != nil {
		out.Tokens = s.Usage.Tokens()
		if s.Usage.CostUSD != nil {
			out.CostUSD = *s.Usage.CostUSD
		}
	}
	return out
}

// Plus is a and b together.
func Plus(a, b moderator.Spent) moderator.Spent {
	return moderator.Spent{
		CostUSD: protocol.RoundUSD(a.CostUSD + b.CostUSD), Tokens: a.Tokens + b.Tokens, TimeMs: a.TimeMs + b.TimeMs,
		Unpriced: a.Unpriced + b.Unpriced, Uncounted: a.Uncounted + b.Uncounted, Blind: a.Blind + b.Blind,
	}
}

// Less is a without b, and nothing below zero.
func Less(a, b moderator.Spent) moderator.Spent {
	return moderator.Spent{
		CostUSD: max(0, protocol.RoundUSD(a.CostUSD-b.CostUSD)), Tokens: max(0, a.Tokens-b.Tokens), TimeMs: max(0,
			a.TimeMs-b.TimeMs),
		Unpriced: max(0, a.Unpriced-b.Unpriced), Uncounted: max(0, a.Uncounted-b.Uncounted), Blind: max(0, a.Blind-b.Blind),
	}
}

// Least is the smaller one of two bounds; nil: there was none.
func Least[T int64 | float64](before *T, now T) *T {
	if before != nil {
		now = min(now, *before)
	}
	return &now
}

// Limit returns which limit was reached, as a fact of a reason; "": the first of those that are set.
func Limit(l protocol.Limits, reached string) string {
	switch {
	case reached == protocol.OutcomeMaxCost, reached == "" && l.MaxCostUSD > 0:
		return "cost"
	case reached == protocol.OutcomeMaxTokens, reached == "" && l.MaxTokens > 0:
		return "tokens"
	}
	return "time"
}

// More is what a person grants a run beyond its limits.
type More struct {
	CostUSD float64
	Tokens  int64
	Time    time.Duration
	Again   bool // as much as the limits are, of what is used up
}

// Asked reports whether anything is granted.
func (m More) Asked() bool { return m.Again || m.CostUSD > 0 || m.Tokens > 0 || m.Time > 0 }

// Set takes over the limits that are not zero. What was granted before was granted
// beyond another limit.
func Set(own *heads.Limits, l protocol.Limits) {
	if l.MaxCostUSD > 0 {
		own.MaxCostUSD, own.More.CostUSD = l.MaxCostUSD, 0
	}
	if l.MaxTokens > 0 {
		own.MaxTokens, own.More.Tokens = l.MaxTokens, 0
	}
	if l.MaxTimeMs > 0 {
		own.MaxTimeMs, own.More.TimeMs = l.MaxTimeMs, 0
	}
}

// Grant adds to what was granted.
func Grant(own *heads.Limits, id string, s moderator.State, outcome string, m More) ([]string, error) {
	now, spent := s.Limits, s.Spent // with what was granted before
	base := now
	base.MaxCostUSD, base.MaxTokens, base.MaxTimeMs = now.MaxCostUSD-own.More.CostUSD, now.MaxTokens-own.More.Tokens,
		now.MaxTimeMs-own.More.TimeMs
	if m.Again {
		reached := nearly(now, spent)
		switch outcome { // a reply more would not have fitted, however much is left
		case protocol.OutcomeMaxCost:
			reached.MaxCostUSD = now.MaxCostUSD
		case protocol.OutcomeMaxTokens:
			reached.MaxTokens = now.MaxTokens
		case protocol.OutcomeMaxTime:
			reached.MaxTimeMs = now.MaxTimeMs
		}
		if _, over := moderator.OverBudget(s, ""); !over && reached == (protocol.Limits{}) {
			if outcome != "" {
				return nil, nil // the step's own budget: it has as much again anyway
			}
			limit := ""
			if Bounded(now) {
				limit = Limit(now, "")
			}
			return nil, fault.New(protocol.CodeFailed, "thread %s has not reached a limit of what it may cost: there is nothing "+
				"to grant again", id).Because("limit-not-reached", "thread", id, "limit", limit)
		}
		if reached.MaxCostUSD > 0 {
			m.CostUSD = max(m.CostUSD, base.MaxCostUSD)
		}
		if reached.MaxTokens > 0 {
			m.Tokens = max(m.Tokens, base.MaxTokens)
		}
		if reached.MaxTimeMs > 0 {
			m.Time = max(m.Time, ms(base.MaxTimeMs))
		}
	}
	for _, asked := range []struct {
		more, limit bool
		name, fact  string
	}{
		{m.CostUSD > 0, now.MaxCostUSD > 0, "maxCostUsd", "cost"}, {m.Tokens > 0, now.MaxTokens > 0, "maxTokens",
			"tokens"}, {m.Time > 0, now.MaxTimeMs > 0, "maxTime", "time"},
	} {
		if asked.more && !asked.limit {
			return nil, fault.New(protocol.CodeUsage, "thread %s has no limit %s: there is nothing to grant beyond it", id,
				asked.name).Because("no-such-limit", "thread", id, "limit", asked.fact)
		}
	}
	var lines []string
	if m.CostUSD > 0 {
		total := protocol.RoundUSD(max(now.MaxCostUSD, spent.CostUSD) + m.CostUSD)
		own.More.CostUSD = protocol.RoundUSD(total - base.MaxCostUSD)
		lines = append(lines, fmt.Sprintf("granted %s more: the run has cost %s, and may cost %s in all",
			protocol.Dollars(m.CostUSD), protocol.Dollars(spent.CostUSD), protocol.Dollars(total)))
	}
	if m.Tokens > 0 {
		total := min(max(now.MaxTokens, spent.Tokens)+m.Tokens, protocol.MaxFigure)
		own.More.Tokens = total - base.MaxTokens
		lines = append(lines, fmt.Sprintf("granted %d more tokens: the run has used %d, and may use %d in all", m.Tokens,
			spent.Tokens, total))
	}
	if m.Time > 0 {
		total := max(now.MaxTimeMs, spent.TimeMs) + m.Time.Milliseconds()
		own.More.TimeMs = total - base.MaxTimeMs
		lines = append(lines, fmt.Sprintf("granted %s more: the steps of the run have taken %s, and may take %s in all",
			protocol.Span(m.Time), protocol.Span(ms(spent.TimeMs)), protocol.Span(ms(total))))
	}
	if n, _ := spent.Unheld(now); n > 0 {
		own.More.Unpriced, own.More.Uncounted, own.More.Blind = own.More.Unpriced+spent.Unpriced,
			own.More.Uncounted+spent.Uncounted, own.More.Blind+spent.Blind
		lines = append(lines, fmt.Sprintf("accepted that it is not known what %d of its runs of agents have cost or used", n))
	}
	return lines, nil
}

// nearly are the limits that are used up, or that leave so little that an agent which
// keeps to them has ended before its work was done.
func nearly(l protocol.Limits, spent moderator.Spent) (reached protocol.Limits) {
	const most = 0.8
	if spent.CostUSD >= most*l.MaxCostUSD {
		reached.MaxCostUSD = l.MaxCostUSD
	}
	if float64(spent.Tokens) >= most*float64(l.MaxTokens) {
		reached.MaxTokens = l.MaxTokens
	}
	if float64(spent.TimeMs) >= most*float64(l.MaxTimeMs) {
		reached.MaxTimeMs = l.MaxTimeMs
	}
	return reached
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// limitsSaid are the facts of a thread that begins with limits of its own.
func Said(l protocol.Limits) *heads.Limits {
	if !Bounded(l) {
		return nil
	}
	var own heads.Limits
	Set(&own, l)
	return &own
}

// CostOf is what a child has cost; nil if nothing is known. Where the cost of one of its
// runs is unknown, so is that of the child.
func CostOf(sum protocol.Totals) *protocol.Usage {
	if sum.Usage == nil {
		return nil
	}
	usage := *sum.Usage
	usage.DurationMs = sum.DurationMs
	if sum.StepsWithoutCost > 0 {
		usage.CostUSD = nil
	}
	return &usage
}
