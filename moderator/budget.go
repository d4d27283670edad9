package moderator

import (
	"fmt"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// OverBudget reports whether a run has reached a cost, token or time limit, so that no new step may start,
// and why. Unknown usage doesn't count as zero: the token limit bounds a step without a price, and the cost
// limit bounds one without token counts. If neither limit applies, a person has to decide.
func OverBudget(s State, role string) (string, bool) {
	const next = "; %q would be next"
	if i := reached(s.Limits, s.Spent); i >= 0 {
		text := protocol.Measures()[i].OfAtMost(s.Spent.Figures()[i], s.Limits.Amount().Figures()[i])
		return fmt.Sprintf(text+next, role), true
	}
	unknown, what := Unmeasured(s.Spent, s.Limits)
	if unknown == 0 {
		return "", false
	}
	return fmt.Sprintf("%s of %s is unknown, so the limit can't be enforced"+next, what, render.Count(unknown,
		"agent run"), role), true
}

// Reached returns the code of the first limit that a run has used up, such as [protocol.OutcomeMaxCost], or
// "".
func Reached(l protocol.Limits, spent protocol.Amount) string {
	if i := reached(l, spent); i >= 0 {
		return protocol.Measures()[i].Outcome
	}
	return ""
}

// reached returns the index of the first limit that is used up, or -1.
func reached(l protocol.Limits, spent protocol.Amount) int {
	used := spent.Figures()
	for i, most := range l.Amount().Figures() {
		if most > 0 && used[i] >= most {
			return i
		}
	}
	return -1
}

// Unmeasured returns how many agent runs the limits can't bound because their usage is unknown, and which figures
// are missing.
func Unmeasured(s protocol.Amount, l protocol.Limits) (n int, what string) {
	switch {
	case l.MaxCostUSD > 0 && l.MaxTokens > 0:
		return s.Blind, "cost"
	case l.MaxCostUSD > 0:
		return s.Unpriced, "cost"
	case l.MaxTokens > 0:
		return s.Uncounted, "token usage"
	}
	return 0, ""
}
