package moderator

import (
	"fmt"

	"github.com/united-workforce/uwf/protocol"
)

// OverBudget reports whether a run has cost what it may, so that nothing new may begin,
// and why. What is unknown never counts as nothing: a step without a price is held by
// the limit of tokens, one without tokens by that of the cost, and where neither can
// hold it a person has to look.
func OverBudget(s State, role string) (string, bool) {
	const next = "; %q would be next"
	if i := reached(s.Limits, s.Spent); i >= 0 {
		text := protocol.Measures()[i].OfAtMost(s.Spent.Figures()[i], s.Limits.Amount().Figures()[i])
		return fmt.Sprintf(text+next, role), true
	}
	unknown, what := Unheld(s.Spent, s.Limits)
	if unknown == 0 {
		return "", false
	}
	return fmt.Sprintf("what %s of an agent %s is unknown, so the remaining budget is, too"+next, plural(unknown,
		"run"), what, role), true
}

// Reached returns the limit that a run has used up, such as [protocol.OutcomeMaxCost]; "": none.
func Reached(l protocol.Limits, spent protocol.Amount) string {
	if i := reached(l, spent); i >= 0 {
		return protocol.Measures()[i].Outcome
	}
	return ""
}

// reached is the index of the first limit that is used up; -1: none is.
func reached(l protocol.Limits, spent protocol.Amount) int {
	used := spent.Figures()
	for i, most := range l.Amount().Figures() {
		if most > 0 && used[i] >= most {
			return i
		}
	}
	return -1
}

// Unheld is how many runs of agents the limits cannot hold, because nobody knows what
// they have cost, and what is not known of them.
func Unheld(s protocol.Amount, l protocol.Limits) (n int, what string) {
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
