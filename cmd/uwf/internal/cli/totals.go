package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// totalTokens says what is known of the tokens, and of how many steps it is not.
func totalTokens(t protocol.Totals) string {
	switch {
	case t.Steps == 0:
		return ""
	case !t.Usage.Counted():
		return "unknown"
	}
	text := fmt.Sprintf("%s%s in, %s out", atLeast(t.StepsWithoutUsage),
		thousands(t.Usage.InputTokens+t.Usage.CacheReadTokens+t.Usage.CacheWriteTokens), thousands(t.Usage.OutputTokens))
	if cached := t.Usage.CacheReadTokens; cached > 0 {
		text += fmt.Sprintf(" (%s of them from a cache)", thousands(cached))
	}
	return text + unknownOf(t.StepsWithoutUsage, t.Steps)
}

// totalCost says what is known of the cost, and of how many steps it is not.
func totalCost(t protocol.Totals) string {
	switch {
	case t.Steps == 0:
		return ""
	case t.Usage == nil || t.Usage.CostUSD == nil:
		return "unknown"
	}
	return atLeast(t.StepsWithoutCost) + protocol.Dollars(*t.Usage.CostUSD) + unknownOf(t.StepsWithoutCost, t.Steps)
}

// spent is tokens and cost in short; withoutUsage and withoutCost are of how many
// steps they are not known, so that they are a lower bound.
func spent(u *protocol.Usage, withoutUsage, withoutCost int) string {
	tokens, cost := "", ""
	if u != nil && withoutUsage+withoutCost == 0 && u.Turns == 0 && u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens+u.OutputTokens == 0 {
		return "" // no model was asked
	}
	if u.Counted() {
		tokens = least(withoutUsage) + inShort(u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens) + "/" + inShort(u.OutputTokens)
	}
	if u != nil && u.CostUSD != nil {
		cost = least(withoutCost) + protocol.Dollars(*u.CostUSD)
	}
	return joined(tokens, cost)
}

// least marks a lower bound in short.
func least(unknown int) string {
	if unknown == 0 {
		return ""
	}
	return "≥"
}

// inShort is a number in at most four characters or so: 120, 5.4k, 1.2M.
func inShort(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e3), ".0") + "k"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}

func unknownOf(n, of int) string {
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

// thousands groups the digits of a number.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
