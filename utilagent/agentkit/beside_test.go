package agentkit

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBesideKeepsTheOrder(t *testing.T) {
	t.Parallel()
	var b beside
	var done []int
	start := make(chan struct{})
	for i := range mostWaiting {
		b.do(func() error {
			<-start
			done = append(done, i)
			return nil
		})
	}
	close(start) // do returns at once, or the test would hang here
	require.NoError(t, b.wait())
	require.Len(t, done, mostWaiting)
	require.IsIncreasing(t, done)
}

func TestBesideEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	var b beside
	full := errors.New("disk full")
	b.do(func() error { return full })
	require.ErrorIs(t, b.wait(), full)
	b.do(func() error { panic("nothing more is done") })
	require.ErrorIs(t, b.wait(), full)
	require.ErrorIs(t, b.failed(), full)
}

func TestBesideIsBounded(t *testing.T) {
	t.Parallel()
	var b beside
	for range 20 * mostWaiting {
		b.do(func() error { return nil })
		require.LessOrEqual(t, b.waiting(), mostWaiting)
	}
	require.NoError(t, b.wait())
}
