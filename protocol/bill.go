package protocol

import (
	"fmt"
	"math"
)

// Counted reports whether the tokens are known. Nobody asks a model without a
// token: where there were replies, no tokens at all mean that they are unknown.
func (u *Usage) Counted() bool {
	switch {
	case u == nil:
		return false
	case u.Turns == 0:
		return true
	}
	return u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens+u.OutputTokens > 0
}

// Tokens is how many were read and written.
func (u Usage) Tokens() int64 {
	return addUp(addUp(u.InputTokens, u.CacheReadTokens), addUp(u.CacheWriteTokens, u.OutputTokens))
}

// IsPriced reports whether the cost is known: where no model was asked there is none. Limits,
// totals and what is shown ask nothing else.
func (u *Usage) IsPriced() bool {
	return u != nil && (u.CostUSD != nil || u.Turns == 0 && u.Tokens() == 0)
}

// IfKnown is u, or nil where neither tokens nor cost are known: unknown is never
// told as zero.
func (u Usage) IfKnown() *Usage {
	if !u.Counted() && u.CostUSD == nil {
		return nil
	}
	return &u
}

// Bill adds up what the parts of one run cost: its replies, or its tries. The zero
// value is that of a run without any.
type Bill struct {
	// AtLeast is the sum of what is known.
	AtLeast Usage
	// Parts is how many there were; of Uncounted ones the tokens are unknown, of
	// Unpriced ones the cost.
	Parts, Uncounted, Unpriced int
}

// Add adds a part; nil: nothing is known of it.
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

// Without is the bill without what was told before. If that is all, so is what was not
// known of it.
func (b Bill) Without(told Usage) Bill {
	if told == (Usage{}) {
		return b
	}
	less := func(x, y int64) int64 { return max(0, x-y) }
	u := b.AtLeast
	u.Turns = int(less(int64(u.Turns), int64(told.Turns)))
	u.InputTokens, u.OutputTokens = less(u.InputTokens, told.InputTokens), less(u.OutputTokens, told.OutputTokens)
	u.CacheReadTokens, u.CacheWriteTokens = less(u.CacheReadTokens, told.CacheReadTokens), less(u.CacheWriteTokens,
		told.CacheWriteTokens)
	u.ReasoningTokens, u.DurationMs = less(u.ReasoningTokens, told.ReasoningTokens), less(u.DurationMs, told.DurationMs)
	if u.CostUSD != nil && told.CostUSD != nil {
		rest := max(0, RoundUSD(*u.CostUSD-*told.CostUSD))
		u.CostUSD = &rest
	}
	if u.Turns == 0 && u.Tokens() == 0 {
		return Bill{}
	}
	b.AtLeast = u
	return b
}

// Usage is what all parts cost. What is unknown of one part is unknown of all,
// since a sum that may be too low does not show it; nil: nothing is known.
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

// Priced is u with the cost by a price, unless its cost is known, its tokens are not,
// or there is no price.
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

// RoundUSD rounds a cost to what can be meant: sums of dollars gather noise in
// their last digits.
func RoundUSD(usd float64) float64 {
	const most = 1e4 // above, float64 has no such digits
	if usd > most {
		return usd
	}
	return math.Round(usd*1e10) / 1e10
}

// Dollars is an amount as people read it.
func Dollars(usd float64) string {
	switch {
	case usd > 0 && usd < 0.01:
		return fmt.Sprintf("$%.4f", usd)
	case usd < 1:
		return fmt.Sprintf("$%.3f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
