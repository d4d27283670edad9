package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// Tokens says what is known of the tokens, and of how many steps it is not.
func Tokens(t protocol.Totals) string {
	switch {
	case t.Steps+t.FailedTries == 0:
		return ""
	case !t.Usage.Counted():
		return "unknown"
	}
	text := fmt.Sprintf("%s%s in, %s out", atLeast(t.StepsWithoutUsage),
		Thousands(t.Usage.InputTokens+t.Usage.CacheReadTokens+t.Usage.CacheWriteTokens), Thousands(t.Usage.OutputTokens))
	if cached := t.Usage.CacheReadTokens; cached > 0 {
		text += fmt.Sprintf(" (%s of them from a cache)", Thousands(cached))
	}
	return text + unknownOf(t.StepsWithoutUsage, t)
}

// Cost says what is known of the cost, and of how many steps it is not.
func Cost(t protocol.Totals) string {
	switch {
	case t.Steps+t.FailedTries == 0:
		return ""
	case t.Usage == nil || t.Usage.CostUSD == nil:
		return "unknown"
	}
	return atLeast(t.StepsWithoutCost) + protocol.Dollars(*t.Usage.CostUSD) + unknownOf(t.StepsWithoutCost, t)
}

// Note says what a role has cost.
func Note(t protocol.Totals) string {
	parts := []string{fmt.Sprintf("×%d", t.Steps), render.Duration(t.DurationMs)}
	if t.Usage.Counted() {
		parts = append(parts, atLeast(t.StepsWithoutUsage)+StepTokens(t.Usage))
	} else {
		parts = append(parts, "tokens unknown")
	}
	if t.Usage != nil && t.Usage.CostUSD != nil {
		parts = append(parts, atLeast(t.StepsWithoutCost)+protocol.Dollars(*t.Usage.CostUSD))
	}
	return strings.Join(parts, " · ")
}

// StepTokens is what a step cost; unknown is shown as unknown.
func StepTokens(u *protocol.Usage) string {
	if !u.Counted() {
		return "?"
	}
	return fmt.Sprintf("%d in, %d out", u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, u.OutputTokens)
}

// Changes says how much of the files changed.
func Changes(t protocol.FileTotals) string {
	if t.Files == 0 {
		return "none"
	}
	text := render.Count(t.Files, "file")
	if t.Added+t.Removed > 0 {
		text += fmt.Sprintf(" +%d -%d", t.Added, t.Removed)
	}
	return text
}

func unknownOf(n int, t protocol.Totals) string {
	of := t.Steps + min(1, t.FailedTries)
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; 1 of %d steps does not say", of)
	}
	return fmt.Sprintf("; %d of %d steps do not say", n, of)
}

// atLeast marks a lower bound.
func atLeast(unknown int) string {
	if unknown == 0 {
		return ""
	}
	return "at least "
}

// LimitsText is what bounds a run, for people: "100 steps, $5.00 in all".
func LimitsText(l protocol.Limits) string {
	var parts []string
	for _, x := range protocol.AllLimits() {
		amount := Thousands(int64(x.Number(l)))
		switch x.Unit {
		case protocol.UnitDollars:
			amount = protocol.Dollars(x.Number(l))
		case protocol.UnitMs:
			amount = render.Duration(int64(x.Number(l)))
		}
		if x.Number(l) > 0 {
			parts = append(parts, amount+" "+x.Of)
		}
	}
	return strings.Join(parts, ", ")
}

// Thousands groups the digits of a number.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
