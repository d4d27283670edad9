package term

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Spent is tokens and cost in short; withoutUsage and withoutCost are of how many
// steps they are not known, so that they are a lower bound. That it is at least nothing is
// no news.
func Spent(u *protocol.Usage, withoutUsage, withoutCost int) string {
	tokens := ""
	if u != nil && withoutUsage+withoutCost == 0 && u.Turns == 0 && u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens+u.OutputTokens == 0 {
		return "" // no model was asked
	}
	if u.Counted() && (u.Tokens() > 0 || withoutUsage == 0) {
		tokens = least(withoutUsage) + inShort(u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens) + "/" + inShort(u.OutputTokens)
	}
	return Joined(tokens, Dollars(u, withoutCost))
}

// Dollars is a cost in short, "" if it is not known.
func Dollars(u *protocol.Usage, withoutCost int) string {
	if u == nil || u.CostUSD == nil || *u.CostUSD == 0 && withoutCost > 0 {
		return ""
	}
	return least(withoutCost) + protocol.Dollars(*u.CostUSD)
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
