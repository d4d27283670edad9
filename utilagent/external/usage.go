package external

import (
	"math"

	"github.com/united-workforce/uwf/protocol"
)

// Usage is what a program says that its run cost.
type Usage struct {
	// Usage has input tokens without those read from a cache. Nil: it does not say.
	*protocol.Usage
	// TokensOfSession and CostOfSession: the figures count on over all runs of the
	// session, so that what was counted before is taken off.
	TokensOfSession bool
	CostOfSession   bool
}

// Since is the usage of one run, given the totals that the program had told of its
// session before, and the totals that it has told now.
func (u Usage) Since(before protocol.Usage) (run, totals protocol.Usage) {
	if u.Usage == nil {
		return protocol.Usage{}, before
	}
	run, totals = *u.Usage, before
	if u.TokensOfSession {
		totals = *u.Usage
		totals.CostUSD = before.CostUSD
		if rest, ok := minus(totals, before); ok {
			rest.CostUSD = run.CostUSD
			run = rest
		}
	}
	if u.CostOfSession && run.CostUSD != nil {
		totals.CostUSD = run.CostUSD
		if before.CostUSD != nil && *before.CostUSD <= *run.CostUSD {
			rest := math.Round((*run.CostUSD-*before.CostUSD)*1e9) / 1e9 // of no meaning beyond that
			run.CostUSD = &rest
		}
	}
	return run, totals
}

// minus takes off tokens; not ok if there would be less than none: then the
// program has begun to count anew.
func minus(a, b protocol.Usage) (protocol.Usage, bool) {
	ok := true
	less := func(x, y int64) int64 {
		ok = ok && x >= y
		return x - y
	}
	a.InputTokens = less(a.InputTokens, b.InputTokens)
	a.CacheReadTokens = less(a.CacheReadTokens, b.CacheReadTokens)
	a.CacheWriteTokens = less(a.CacheWriteTokens, b.CacheWriteTokens)
	a.OutputTokens = less(a.OutputTokens, b.OutputTokens)
	a.ReasoningTokens = less(a.ReasoningTokens, b.ReasoningTokens)
	return a, ok
}
