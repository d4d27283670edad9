package moderator

import (
	"fmt"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Spent is what a run has cost so far, as far as it is known, and for how many of its
// steps and tries it is not. What a person has accepted is not among those.
type Spent struct {
	CostUSD float64
	Tokens  int64
	TimeMs  int64

	Unpriced  int // the cost is unknown
	Uncounted int // the tokens are unknown
	Blind     int // both are
}

// OverBudget reports whether a run has cost what it may, so that nothing new may begin,
// and why. What is unknown never counts as nothing: a step without a price is held by
// the limit of tokens, one without tokens by that of the cost, and where neither can
// hold it a person has to look.
func OverBudget(s State, role string) (string, bool) {
	l, spent := s.Limits, s.Spent
	const next = "; %q would be next"
	switch Reached(l, spent) {
	case protocol.OutcomeMaxCost:
		return fmt.Sprintf("the run has cost %s of at most %s (maxCostUsd)"+next, protocol.Dollars(spent.CostUSD),
			protocol.Dollars(l.MaxCostUSD), role), true
	case protocol.OutcomeMaxTokens:
		return fmt.Sprintf("the run has used %d of at most %d tokens (maxTokens)"+next, spent.Tokens, l.MaxTokens, role), true
	case protocol.OutcomeMaxTime:
		return fmt.Sprintf("the steps of the run have taken %s of at most %s (maxTime)"+next, span(spent.TimeMs),
			span(l.MaxTimeMs), role), true
	}
	unknown, what := spent.Unheld(l)
	if unknown == 0 {
		return "", false
	}
	return fmt.Sprintf("what %s of an agent %s is unknown, so the remaining budget is, too"+next, plural(unknown,
		"run"), what, role), true
}

// Reached returns the limit that a run has used up, such as [protocol.OutcomeMaxCost]; "": none.
func Reached(l protocol.Limits, spent Spent) string {
	switch {
	case l.MaxCostUSD > 0 && spent.CostUSD >= l.MaxCostUSD:
		return protocol.OutcomeMaxCost
	case l.MaxTokens > 0 && spent.Tokens >= l.MaxTokens:
		return protocol.OutcomeMaxTokens
	case l.MaxTimeMs > 0 && spent.TimeMs >= l.MaxTimeMs:
		return protocol.OutcomeMaxTime
	}
	return ""
}

// Unheld is how many runs of agents the limits cannot hold, because nobody knows what
// they have cost, and what is not known of them.
func (s Spent) Unheld(l protocol.Limits) (n int, what string) {
	switch {
	case l.MaxCostUSD > 0 && l.MaxTokens > 0:
		return s.Blind, "cost, in dollars or tokens,"
	case l.MaxCostUSD > 0:
		return s.Unpriced, "cost"
	case l.MaxTokens > 0:
		return s.Uncounted, "used of tokens"
	}
	return 0, ""
}

func span(ms int64) string { return protocol.Span(time.Duration(ms) * time.Millisecond) }
