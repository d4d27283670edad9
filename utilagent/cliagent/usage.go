package cliagent

import (
	"math"

	"github.com/united-workforce/uwf/protocol"
)

// Usage is what a program says that its run cost.
type Usage struct {
	// Usage has input tokens without those read from a cache. Nil: it does not say.
	*protocol.Usage
	// TokensOfSession and CostOfSession say that the figures accumulate over all runs of the
	// session, so what was counted before is subtracted.
	TokensOfSession bool
	CostOfSession   bool
}

// Since is the usage of one run, given the totals that the program had told of its
// session before, and the totals that it has told now.
func (u Usage) Since(before protocol.Usage) (run, totals protocol.Usage) {
	if u.Usage == nil || u.TokensOfSession && u.Tokens() == 0 {
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

// minus subtracts tokens; not ok if the result would be negative: then the program has reset
// its counters.
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

// spent is what the calls of one run cost.
type spent struct {
	bill   protocol.Bill
	tookMs int64
	untold int // calls in which the model worked, and nothing was said of the cost
}

// add adds a call. A call that ended before the model said a word has no known cost. A program
// that counts over the session reports in a later call what it did not report before.
func (s *spent) add(out tried) {
	s.tookMs += out.usage.DurationMs
	switch {
	case out.Usage.Usage != nil:
		if out.Usage.TokensOfSession && out.task.session != "" {
			s.untold = 0
		}
		u := out.usage
		s.bill.Add(&u)
	case out.worked:
		s.untold++
	}
}

// nothing reports whether no model worked in any call.
func (s *spent) nothing() bool { return s.bill.Parts == 0 && s.untold == 0 }

// usage is what all calls cost; nil if that is unknown.
func (s *spent) usage() *protocol.Usage {
	b := s.bill
	for range s.untold {
		b.Add(nil)
	}
	u := b.Usage()
	if u != nil {
		u.DurationMs = s.tookMs
	}
	return u
}
