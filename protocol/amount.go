package protocol

import (
	"fmt"
	"strconv"
	"time"
)

// Amount is the actual or maximum cost of runs. Unknown values of a run are missing in the figures and
// counted in Unknown.
type Amount struct {
	CostUSD float64 `json:"costUsd,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"` // input and output
	TimeMs  int64   `json:"timeMs,omitempty"` // working time
	Unknown
}

// Unknown counts the runs of agents, including failed tries, with unknown values.
type Unknown struct {
	Unpriced  int `json:"unpriced,omitempty"`  // cost unknown
	Uncounted int `json:"uncounted,omitempty"` // tokens unknown
	Blind     int `json:"blind,omitempty"`     // both unknown
}

// Judge counts the unknown values of a run.
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

// AmountOf returns the known cost of steps.
func AmountOf(t Totals) (a Amount) {
	a.TimeMs = t.DurationMs
	if t.Usage != nil {
		a.Tokens = t.Usage.Tokens()
		if t.Usage.CostUSD != nil {
			a.CostUSD = *t.Usage.CostUSD
		}
	}
	return a
}

// Figures returns the cost, the tokens and the time, in the order of [Measures]. A float64 represents each of
// them exactly.
func (a Amount) Figures() [3]float64 {
	return [...]float64{a.CostUSD, float64(a.Tokens), float64(a.TimeMs)}
}

// WithFigures returns a with other figures.
func (a Amount) WithFigures(f [3]float64) Amount {
	a.CostUSD, a.Tokens, a.TimeMs = RoundUSD(f[0]), int64(f[1]), int64(f[2])
	return a
}

// Plus returns the sum of both amounts.
func (a Amount) Plus(b Amount) Amount {
	return a.Combined(b, func(x, y float64) float64 { return x + y })
}

// Less returns a minus b, but nothing below zero.
func (a Amount) Less(b Amount) Amount {
	return a.Combined(b, func(x, y float64) float64 { return max(0, x-y) })
}

// Combined applies f to each pair of corresponding figures and numbers of two amounts.
func (a Amount) Combined(b Amount, f func(x, y float64) float64) Amount {
	x, y := a.Figures(), b.Figures()
	for i := range x {
		x[i] = f(x[i], y[i])
	}
	n := func(x, y int) int { return int(f(float64(x), float64(y))) }
	return Amount{Unknown: Unknown{Unpriced: n(a.Unpriced, b.Unpriced), Uncounted: n(a.Uncounted, b.Uncounted),
		Blind: n(a.Blind, b.Blind)}}.WithFigures(x)
}

// Measure describes one figure of an [Amount] and its limit.
type Measure struct {
	Key     string // key of the limit in workflow files
	Fact    string // name of the limit in reasons of errors
	Outcome string // outcome of a run that has reached the limit
	Has     string // verb before the used amount
	May     string // verb before the permitted amount
	Unit    string // unit after an amount
	Text    func(float64) string
}

// Measures returns the measures of an [Amount].
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

// OfAtMost describes how much of a limit is used up.
func (x Measure) OfAtMost(used, limit float64) string {
	return fmt.Sprintf("%s %s of at most %s%s (%s)", x.Has, x.Text(used), x.Text(limit), x.Unit, x.Key)
}

// Amount returns the cost limits; zero means unlimited.
func (l Limits) Amount() Amount {
	return Amount{CostUSD: l.MaxCostUSD, Tokens: l.MaxTokens, TimeMs: l.MaxTimeMs}
}

// WithAmount returns l with other cost limits.
func (l Limits) WithAmount(a Amount) Limits {
	l.MaxCostUSD, l.MaxTokens, l.MaxTimeMs = a.CostUSD, a.Tokens, a.TimeMs
	return l
}
