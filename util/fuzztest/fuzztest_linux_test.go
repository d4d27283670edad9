package fuzztest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// judge is a test that only records its failures.
type judge struct {
	testing.TB
	failures []string
}

func (j *judge) Errorf(format string, args ...any) {
	j.failures = append(j.failures, fmt.Sprintf(format, args...))
}

func TestBounded(t *testing.T) {
	t.Parallel()
	j := &judge{TB: t}
	Bounded(j)()
	require.Empty(t, j.failures)
	const limit = 10 * time.Millisecond
	end := within(j, limit)
	spent := stopwatch()
	for n := 0; spent() <= limit; n++ {
		_ = fmt.Sprint(n)
	}
	end()
	require.Len(t, j.failures, 1)
	prosetest.Text(t, j.failures[0])
}

// Waiting isn't counted, so a busy machine doesn't cause failures.
func TestWaitingCostsNothing(t *testing.T) {
	t.Parallel()
	j := &judge{TB: t}
	end := Bounded(j)
	<-time.After(10 * time.Millisecond)
	end()
	require.Empty(t, j.failures)
}
