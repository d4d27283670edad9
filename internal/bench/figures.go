package main

import (
	"math"
	"slices"
)

// figures sum up the samples of one thing. The zero value is of no samples.
type figures struct {
	Min    float64 `json:"min"`
	P10    float64 `json:"p10"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
}

func summarize(samples []float64) figures {
	if len(samples) == 0 {
		return figures{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	return figures{
		Min: sorted[0], P10: quantile(sorted, 0.1), Median: quantile(sorted, 0.5), P90: quantile(sorted, 0.9),
	}
}

// quantile is the value below which a share q of the sorted samples lies, on the
// line between its two neighbours.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// exponent fits amount = c·sizeᵏ by least squares of the logarithms, and returns
// k: 0 is flat, 1 linear. Sizes and amounts are positive; there are two sizes at least.
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
