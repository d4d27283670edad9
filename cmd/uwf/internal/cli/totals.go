package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

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
