package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// side measures one side of a comparison once, in the unit of its row. Preparations are not included.
type side func(b testing.TB) float64

// row is one guarantee: the cost of the last side as a multiple of the first; or, for sides with sizes, k in
// cost = c·sizeᵏ.
type row struct {
	name    string
	against string // description of the first side; "" for sizes
	sizes   []float64
	sides   []side
	unit    string
	promise float64 // upper bound for the median; 0 for none
	missing string  // why it can't be measured
}

// versus returns a row with the ratio of two sides.
func versus(name string, subject side, promise float64, against string, anchor side) row {
	return row{name: name, against: against, unit: "ms", promise: promise, sides: []side{anchor, subject}}
}

// grows returns a row with the growth of one thing over some sizes.
func grows(name string, promise float64, sizes []int, at func(size int) side) row {
	r := row{name: name, unit: "ms", promise: promise}
	for _, n := range sizes {
		r.sizes, r.sides = append(r.sizes, float64(n)), append(r.sides, at(n))
	}
	return r
}

// fewest is the minimum number of rounds, so that there is a median.
const fewest = 3

// run measures a row. All sides are measured in each round, so that a machine that slows down slows all of
// them. The first round is not counted: it builds what the row needs and warms the caches.
func (r row) run(b *testing.B) {
	if r.missing != "" {
		b.Skip(r.missing)
	}
	r.round(b, 0)
	var figures []float64
	samples := make([][]float64, len(r.sides))
	again := func() {
		costs := r.round(b, len(figures))
		figures = append(figures, r.figure(costs))
		for i, c := range costs {
			samples[i] = append(samples[i], c)
		}
	}
	for b.Loop() {
		again()
	}
	for len(figures) < fewest {
		again()
	}
	b.ReportMetric(0, "ns/op") // the time of a round is meaningless
	median := quantile(figures, 0.5)
	b.ReportMetric(median, r.kind())
	b.ReportMetric(quantile(figures, 0.1), "p10")
	b.ReportMetric(quantile(figures, 0.9), "p90")
	var costs []string
	for i, s := range samples {
		cost := fmt.Sprintf("%.3g %s", quantile(s, 0.5), r.unit)
		if r.sizes != nil {
			cost = fmt.Sprintf("%.0f: %s", r.sizes[i], cost)
		}
		costs = append(costs, cost)
	}
	if r.promise > 0 {
		b.ReportMetric(r.promise, "promised")
	}
	if r.missed(median) {
		b.Logf("MISSED: %s %.2f, promised is %v", r.kind(), median, r.promise)
	}
	if r.sizes == nil {
		slices.Reverse(costs) // the subject first
		costs[1] += " (" + r.against + ")"
	}
	b.Log(strings.Join(costs, ", "))
}

func (r row) missed(median float64) bool { return r.promise > 0 && median > r.promise }

func (r row) kind() string {
	if r.sizes != nil {
		return "exponent"
	}
	return "ratio"
}

// round measures each side once, in alternating order, because a measurement after something expensive is too
// high.
func (r row) round(b testing.TB, number int) []float64 {
	costs := make([]float64, len(r.sides))
	for i := range r.sides {
		if number%2 == 1 {
			i = len(r.sides) - 1 - i
		}
		costs[i] = r.sides[i](b)
		require.Positive(b, costs[i], "a side cost nothing that can be measured")
	}
	return costs
}

// figure returns the result of a round.
func (r row) figure(costs []float64) float64 {
	if r.sizes == nil {
		return costs[1] / costs[0]
	}
	return exponent(r.sizes, costs)
}

// timed returns a side that measures the wall time of f, in ms.
func timed(f func(b testing.TB)) side {
	return func(b testing.TB) float64 {
		start := time.Now()
		f(b)
		return float64(time.Since(start).Microseconds()) / 1000
	}
}

// constant returns a side with a fixed cost.
func constant(amount float64) side { return func(testing.TB) float64 { return amount } }

// quantile returns the value below which a share q of the samples lies, interpolated linearly.
func quantile(samples []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// exponent fits amount = c·sizeᵏ by least squares of the logarithms and returns k: 0 is flat, 1 linear. Sizes
// and amounts must be positive, with at least two sizes.
func exponent(sizes, amounts []float64) float64 {
	var x, y float64
	for i := range sizes {
		x += math.Log(sizes[i]) / float64(len(sizes))
		y += math.Log(amounts[i]) / float64(len(sizes))
	}
	var over, under float64
	for i := range sizes {
		dx := math.Log(sizes[i]) - x
		over += dx * (math.Log(amounts[i]) - y)
		under += dx * dx
	}
	return over / under
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 3, quantile([]float64{3}, 0.1), 1e-9)
	require.InDelta(t, 1.9, quantile([]float64{2, 1}, 0.9), 1e-9, "between two")
	require.InDelta(t, 1, quantile([]float64{1, 1, 100, 1, 1}, 0.5), 1e-9, "one that stands out moves no median")
}

func TestExponent(t *testing.T) {
	t.Parallel()
	sizes := []float64{1, 10, 1_000, 100_000}
	for _, want := range []float64{-0.5, 0, 0.05, 1, 2} {
		amounts := make([]float64, len(sizes))
		for i, n := range sizes {
			amounts[i] = 7 * math.Pow(n, want)
		}
		require.InDelta(t, want, exponent(sizes, amounts), 1e-9)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	r := versus("a", constant(20), 2, "b", constant(10))
	require.InDelta(t, 2, r.figure(r.round(t, 1)), 1e-9)
	require.False(t, r.missed(2), "what is just kept is kept")
	g := grows("a", 0.05, []int{1, 10, 100}, func(n int) side { return constant(float64(n)) })
	require.InDelta(t, 1, g.figure(g.round(t, 1)), 1e-9)
	require.True(t, g.missed(1))
}
