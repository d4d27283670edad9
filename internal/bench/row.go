package main

import (
	"context"
	"time"
)

// side measures one side of a comparison once and returns the amount, in the unit
// of its row. What must be made ready first is not in the amount.
type side func(ctx context.Context) (float64, error)

// kind is which figure a row makes of the amounts of one round.
type kind string

// The kinds.
const (
	ratio  kind = "ratio"    // what the last point costs, as a multiple of the first
	growth kind = "exponent" // k in amount = c·sizeᵏ over all points
)

// row is one promise, or one figure that people ask for.
type row struct {
	family        string // file of the row, and heading of the table
	name, against string
	kind          kind
	unit          string
	promise       float64 // at most this, in the median; 0: nothing is promised
	points        []point // measured in turn, in every round
	rounds        int     // at most; 0: as many as the others
}

// point is one thing that is measured.
type point struct {
	size    int // of what grows; 0 in a ratio
	measure side
}

// versus is a row with the ratio of two sides.
func versus(name string, subject side, promise float64, against string, anchor side) row {
	return row{
		name: name, against: against, kind: ratio, unit: "ms", promise: promise,
		points: []point{{measure: anchor}, {measure: subject}},
	}
}

// grows is a row with the growth of one thing over some sizes.
func grows(name, of string, promise float64, sizes []int, at func(size int) side) row {
	r := row{name: name, against: "size: " + of, kind: growth, unit: "ms", promise: promise}
	for _, n := range sizes {
		r.points = append(r.points, point{size: n, measure: at(n)})
	}
	return r
}

func (r row) in(unit string) row { r.unit = unit; return r }

// atMost bounds the rounds of what takes long, or is the same every time.
func (r row) atMost(rounds int) row { r.rounds = rounds; return r }

// fold makes the figure of one round.
func (r row) fold(amounts []float64) float64 {
	if r.kind == ratio {
		return amounts[1] / amounts[0]
	}
	sizes := make([]float64, len(r.points))
	for i, p := range r.points {
		sizes[i] = float64(p.size)
	}
	return exponent(sizes, amounts)
}

// timed is a side that costs the wall time of f, in ms.
func timed(f func(ctx context.Context) error) side {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		err := f(ctx)
		return float64(time.Since(start).Microseconds()) / 1000, err
	}
}

// constant is a side that is a figure of the promise itself.
func constant(amount float64) side {
	return func(context.Context) (float64, error) { return amount, nil }
}

// title tells a row from the others.
func (r row) title() string { return r.family + ": " + r.name + " | " + r.against }
