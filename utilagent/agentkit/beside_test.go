package agentkit

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBesideKeepsTheOrder(t *testing.T) {
	t.Parallel()
	var done []int
	start := make(chan struct{})
	calls := 0
	b := beside[int]{work: func(list []int) error {
		<-start
		calls++
		done = append(done, list...)
		return nil
	}}
	for i := range mostWaiting {
		b.do(i)
	}
	close(start) // do returns at once, otherwise the test hangs here
	require.NoError(t, b.wait())
	require.Len(t, done, mostWaiting)
	require.IsIncreasing(t, done)
	require.LessOrEqual(t, calls, 3, "what has come meanwhile is done at once")
}

func TestBesideEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	calls := 0
	b := beside[int]{work: func([]int) error {
		calls++
		return full
	}}
	b.do(1)
	require.ErrorIs(t, b.wait(), full)
	b.do(2)
	require.ErrorIs(t, b.wait(), full)
	require.ErrorIs(t, b.failed(), full)
	require.Equal(t, 1, calls, "nothing more is done")
}

func TestBesideIsBounded(t *testing.T) {
	t.Parallel()
	b := beside[int]{work: func([]int) error { return nil }}
	for i := range 20 * mostWaiting {
		b.do(i)
		require.LessOrEqual(t, b.waiting(), mostWaiting)
	}
	require.NoError(t, b.wait())
}
