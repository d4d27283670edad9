// Package queue processes a list with several workers, until one of them stops the rest.
package queue

import (
	"context"
	"sync"
	"sync/atomic"
)

// Work calls do for each item, up to n at once. After a call has returned false or ctx has ended, it starts
// no further calls. It waits for the running calls, and returns the number of items left.
func Work[T any](ctx context.Context, n int, items []T, do func(T) bool) (left int) {
	var (
		workers sync.WaitGroup
		stopped atomic.Bool
		begun   atomic.Int64
	)
	for range min(max(n, 1), len(items)) {
		workers.Go(func() {
			for ctx.Err() == nil && !stopped.Load() {
				i := int(begun.Add(1)) - 1
				if i >= len(items) {
					return
				}
				if !do(items[i]) {
					stopped.Store(true)
				}
			}
		})
	}
	workers.Wait()
	return max(len(items)-int(begun.Load()), 0)
}
