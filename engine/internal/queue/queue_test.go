package queue_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/queue"
)

func TestWork(t *testing.T) {
	t.Parallel()
	items := make([]int, 50)
	for i := range items {
		items[i] = i
	}
	for _, n := range []int{0, 1, 4, 100} {
		var sum atomic.Int64
		require.Zero(t, queue.Work(t.Context(), n, items, func(i int) bool { sum.Add(int64(i)); return true }))
		require.EqualValues(t, 49*50/2, sum.Load())
	}
	require.Equal(t, 47, queue.Work(t.Context(), 1, items, func(i int) bool { return i < 2 }))
	require.GreaterOrEqual(t, queue.Work(t.Context(), 4, items, func(i int) bool { return i < 2 }), 43)
	require.Zero(t, queue.Work(t.Context(), 4, nil, func(int) bool { return false }))
	ctx, cancel := context.WithCancel(t.Context())
	require.Equal(t, 49, queue.Work(ctx, 1, items, func(int) bool { cancel(); return true }))
	require.Equal(t, 50, queue.Work(ctx, 1, items, func(int) bool { return true }))
}
