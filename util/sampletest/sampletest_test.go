package sampletest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A few of many cases are selected, the same ones each time, and always the first.
func TestSample(t *testing.T) {
	t.Parallel()
	draw := func() (chosen []int) {
		sample := New(t)
		for i := range 2000 {
			if sample() {
				chosen = append(chosen, i)
			}
		}
		return chosen
	}
	first := draw()
	require.Equal(t, first, draw())
	require.Zero(t, first[0])
	if exhaustive {
		require.Len(t, first, 2000)
	} else {
		require.InDelta(t, 100, len(first), 40)
	}
}
