package protocol

import (
	"fmt"
	"strconv"
	"time"
)

// Amount is what runs cost, or may cost. What is unknown of a run is missing in the figures, and the
// run counts as one of which it is unknown.
type Amount struct {
	CostUSD float64 `json:"costUsd,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"` // read and written
	TimeMs  int64   `json:"timeMs,omitempty"` // of work
	Unknown
}

// Unknown counts runs of agents, failed tries included, of which something is not known.
type Unknown struct {
	Unpriced  int `json:"unpriced,omitempty"`  // the cost
	Uncounted int `json:"uncounted,omitempty"` // the tokens
	Blind     int `json:"blind,omitempty"`     // both
}

// Judge counts what is not known of a run.
func (n *Unknown) Judge(u *Usage) {
	priced, counted := u.IsPriced(), u.Counted()
	if !priced {
		n.Unpriced++
	}
	if !counted {
		n.Uncounted++
	}
	if !priced && !counted {
		n.Blind++
	}
}

// Figures are the cost, the tokens and the time, in the order of [Measures]. A float64 holds each of
// them exactly.
func (a Amount) Figures() [3]float64 {
	return [...]float64{a.CostUSD, float64(a.Tokens), float64(a.TimeMs)}
}

// WithFigures replaces the figures.
func (a Amount) WithFigures(f [3]float64) Amount {
	a.CostUSD, a.Tokens, a.TimeMs = RoundUSD(f[0]), int64(f[1]), int64(f[2])
	return a
}

// Plus is both amounts together.
func (a Amount) Plus(b Amount) Amount {
	return a.Combined(b, func(x, y float64) float64 { return x + y })
}

// Less is a without b, and nothing below zero.
func (a Amount) Less(b Amount) Amount {
	return a.Combined(b, func(x, y float64) float64 { return max(0, x-y) })
}

// Combined combines each figure and each number of an amount with that of another one.
func (a Amount) Combined(b Amount, f func(x, y float64) float64) Amount {
	x, y := a.Figures(), b.Figures()
	for i := range x {
		x[i] = f(x[i], y[i])
	}
	n := func(x, y int) int { return int(f(float64(x), float64(y))) }
	return Amount{Unknown: Unknown{Unpriced: n(a.Unpriced, b.Unpriced), Uncounted: n(a.Uncounted, b.Uncounted),
		Blind: n(a.Blind, b.Blind)}}.WithFigures(x)
}

// Measure is one figure of an [Amount], and the limit of it.
type Measure struct {
	Key     string // of the limit in workflow files
	Fact    string // of the limit in reasons of errors
	Outcome string // of a run that has used the limit up
	Has     string // what a run has done, before an amount
	May     string // what it may do
	Unit    string // what follows an amount
	Text    func(float64) string
}

// Measures are those of the figures of an [Amount].
func Measures() [3]Measure {
	return [...]Measure{
		{"maxCostUsd", "cost", OutcomeMaxCost, "the run has cost", "cost", "", Dollars},
		{"maxTokens", "tokens", OutcomeMaxTokens, "the run has used", "use", " tokens", func(n float64) string {
			return strconv.FormatInt(int64(n), 10)
		}},
		{"maxTime", "time", OutcomeMaxTime, "the steps of the run have taken", "take", "", func(ms float64) string {
			return Span(time.Duration(ms) * time.Millisecond)
		}},
	}
}

// OfAtMost is how much of a limit is used up.
func (x Measure) OfAtMost(used, limit float64) string {
	return fmt.Sprintf("%s %s of at most %s%s (%s)", x.Has, x.Text(used), x.Text(limit), x.Unit, x.Key)
}

// Amount is what the limits let a run cost; zero: any.
func (l Limits) Amount() Amount {
	return Amount{CostUSD: l.MaxCostUSD, Tokens: l.MaxTokens, TimeMs: l.MaxTimeMs}
}

// WithAmount replaces what the limits let a run cost.
func (l Limits) WithAmount(a Amount) Limits {
	l.MaxCostUSD, l.MaxTokens, l.MaxTimeMs = a.CostUSD, a.Tokens, a.TimeMs
	return l
}
