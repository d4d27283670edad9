package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// pace says how often a row is measured.
type pace struct {
	rounds int           // counted rounds
	budget time.Duration // a row that has had so much ends early, but see fewest
}

// fewest rounds are made in any case, so that there is a median.
const fewest = 3

// over tells whether a row has had enough.
func (p pace) over(done, most int, spent time.Duration) bool {
	if most > 0 && done >= most {
		return true
	}
	return done >= p.rounds || done >= fewest && spent >= p.budget
}

// result is what was measured of a row.
type result struct {
	Family  string   `json:"family"`
	Name    string   `json:"name"`
	Against string   `json:"against"`
	Kind    kind     `json:"kind"`
	figures          // of the ratios or exponents, one a round
	Promise float64  `json:"promise,omitempty"`
	Missed  bool     `json:"missed"`
	Unit    string   `json:"unit"`
	Amounts []amount `json:"amounts"`
	Rounds  int      `json:"rounds"`
	Error   string   `json:"error,omitempty"` // why it could not be measured
}

// amount is the median of what a point cost.
type amount struct {
	Size   int     `json:"size,omitempty"`
	Median float64 `json:"median"`
}

// measure measures a row. The figures are made round by round, so that a machine
// that slows down slows all sides. The first round is not counted: it builds what
// the row needs, and warms the caches.
func (r row) measure(ctx context.Context, p pace) result {
	out := result{Family: r.family, Name: r.name, Against: r.against, Kind: r.kind, Promise: r.promise, Unit: r.unit}
	var folded []float64
	samples := make([][]float64, len(r.points))
	began := time.Now()
	for round := 0; round == 0 || !p.over(round-1, r.rounds, time.Since(began)); round++ {
		amounts, err := r.round(ctx, round)
		if err != nil {
			out.Error = err.Error()
			return out
		}
		if round == 0 {
			began = time.Now()
			continue
		}
		folded = append(folded, r.fold(amounts))
		for i, a := range amounts {
			samples[i] = append(samples[i], a)
		}
	}
	out.figures, out.Rounds = summarize(folded), len(folded)
	out.Missed = r.promise > 0 && out.Median > r.promise
	for i, p := range r.points {
		out.Amounts = append(out.Amounts, amount{p.size, summarize(samples[i]).Median})
	}
	return out
}

// errNothing means that a side cost nothing, so nothing can be said about it.
var errNothing = errors.New("a side cost nothing that can be measured")

// round measures each point once, every other time in the opposite order: what
// comes right after something heavy looks dearer than it is.
func (r row) round(ctx context.Context, number int) ([]float64, error) {
	amounts := make([]float64, len(r.points))
	order := make([]int, len(r.points))
	for i := range order {
		order[i] = i
	}
	if number%2 == 1 {
		slices.Reverse(order)
	}
	for _, i := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if amounts[i], err = r.points[i].measure(ctx); err != nil {
			return nil, err
		}
		if amounts[i] <= 0 {
			return nil, errNothing
		}
	}
	return amounts, nil
}
