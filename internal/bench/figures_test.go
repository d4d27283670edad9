package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		samples []float64
		want    figures
	}{
		{"none", nil, figures{}},
		{"one is everything", []float64{3}, figures{3, 3, 3, 3}},
		{"between two", []float64{2, 1}, figures{1, 1.1, 1.5, 1.9}},
		{"one that stands out moves no median", []float64{1, 1, 100, 1, 1}, figures{1, 1, 1, 60.4}},
		{"eleven", []float64{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, figures{1, 2, 6, 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := summarize(c.samples)
			require.InDeltaSlice(t,
				[]float64{c.want.Min, c.want.P10, c.want.Median, c.want.P90},
				[]float64{got.Min, got.P10, got.Median, got.P90}, 1e-9)
		})
	}
}

func TestSummarizeLeavesTheSamplesAlone(t *testing.T) {
	t.Parallel()
	samples := []float64{3, 1, 2}
	summarize(samples)
	require.Equal(t, []float64{3, 1, 2}, samples)
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
	// Twice as much at ten thousand times the size.
	require.InDelta(t, math.Log(2)/math.Log(10_000), exponent([]float64{1, 10_000}, []float64{5, 10}), 1e-9)
}
