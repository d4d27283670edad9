package protocol

import (
	"fmt"
	"math"
)

// Counted reports whether the tokens are known. A model is never called without tokens, so if there were
// replies, zero tokens mean that they are unknown.
func (u *Usage) Counted() bool {
	switch {
	case u == nil:
		return false
	case u.Turns == 0:
		return true
	}
	return u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens+u.OutputTokens > 0
}

// Tokens returns the number of input and output tokens.
func (u Usage) Tokens() int64 {
	return addUp(addUp(u.InputTokens, u.CacheReadTokens), addUp(u.CacheWriteTokens, u.OutputTokens))
}

// IsPriced reports whether the cost is known. If no model was called, it is known to be zero. Limits, totals
// and displays rely on this method.
func (u *Usage) IsPriced() bool {
	return u != nil && (u.CostUSD != nil || u.Turns == 0 && u.Tokens() == 0)
}

// IfKnown returns u, or nil if neither tokens nor cost are known, so that unknown values are never reported
// as zero.
func (u Usage) IfKnown() *Usage {
	if !u.Counted() && u.CostUSD == nil {
		return nil
	}
	return &u
}

// Bill adds up the cost of the parts of one run: its replies, or its tries. The zero value has no parts.
type Bill struct {
	// AtLeast is the sum of the known values.
	AtLeast Usage
	// Parts is the number of parts; Uncounted is the number with unknown tokens, and Unpriced the number with
	// unknown cost.
	Parts, Uncounted, Unpriced int
}

// Add adds a part; nil means that nothing is known about it.
func (b *Bill) Add(u *Usage) {
	b.Parts++
	if !u.Counted() {
		b.Uncounted++
	}
	if !u.IsPriced() {
		b.Unpriced++
	}
	if u != nil {
		b.AtLeast = b.AtLeast.Add(*u)
	}
}

// AddAll adds the parts of another bill.
func (b *Bill) AddAll(c Bill) {
	b.AtLeast = b.AtLeast.Add(c.AtLeast)
	b.Parts, b.Uncounted, b.Unpriced = b.Parts+c.Parts, b.Uncounted+c.Uncounted, b.Unpriced+c.Unpriced
}

// Without returns the bill without usage that was reported before. If that is all of it, the unknown parts
// are removed as well.
func (b Bill) Without(reported Usage) Bill {
	if reported == (Usage{}) {
		return b
	}
	less := func(x, y int64) int64 { return max(0, x-y) }
	u := b.AtLeast
	u.Turns = int(less(int64(u.Turns), int64(reported.Turns)))
	u.InputTokens, u.OutputTokens = less(u.InputTokens, reported.InputTokens), less(u.OutputTokens, reported.OutputTokens)
	u.CacheReadTokens, u.CacheWriteTokens = less(u.CacheReadTokens, reported.CacheReadTokens), less(u.CacheWriteTokens,
		reported.CacheWriteTokens)
	u.ReasoningTokens, u.DurationMs = less(u.ReasoningTokens, reported.ReasoningTokens), less(u.DurationMs, reported.DurationMs)
	if u.CostUSD != nil && reported.CostUSD != nil {
		rest := max(0, RoundUSD(*u.CostUSD-*reported.CostUSD))
		u.CostUSD = &rest
	}
	if u.Turns == 0 && u.Tokens() == 0 {
		return Bill{}
	}
	b.AtLeast = u
	return b
}

// Usage returns the cost of all parts. A value that is unknown for one part is unknown for all, because the
// sum would be too low without showing it. It returns nil if nothing is known.
func (b Bill) Usage() *Usage {
	if b.Parts == 0 {
		return nil
	}
	u := b.AtLeast
	if b.Unpriced > 0 {
		u.CostUSD = nil
	}
	if b.Uncounted > 0 {
		u.Turns = max(u.Turns, 1)
		u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.OutputTokens, u.ReasoningTokens = 0, 0, 0, 0, 0
	}
	return u.IfKnown()
}

// Priced returns u with the cost computed from a price. It returns u unchanged if its cost is known, its
// tokens are unknown, or p is nil.
func (u Usage) Priced(p *Price) Usage {
	if p == nil || u.CostUSD != nil || !u.Counted() {
		return u
	}
	read, write := p.Input, p.Input
	if p.CacheRead != nil {
		read = *p.CacheRead
	}
	if p.CacheWrite != nil {
		write = *p.CacheWrite
	}
	const million = 1e6
	cost := RoundUSD((float64(u.InputTokens)*p.Input + float64(u.CacheReadTokens)*read +
		float64(u.CacheWriteTokens)*write + float64(u.OutputTokens)*p.Output) / million)
	u.CostUSD = &cost
	return u
}

// RoundUSD rounds a cost to a meaningful number of digits, since sums of dollars accumulate rounding errors.
func RoundUSD(usd float64) float64 {
	const most = 1e4 // float64 has no such digits above this value
	if usd > most {
		return usd
	}
	return math.Round(usd*1e10) / 1e10
}

// Dollars formats an amount in dollars.
func Dollars(usd float64) string {
	switch {
	case usd > 0 && usd < 0.01:
		return fmt.Sprintf("$%.4f", usd)
	case usd < 1:
		return fmt.Sprintf("$%.3f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
