package census

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas"
)

// chunk is the number of nodes that a worker processes at a time.
const chunk = 128

// EachNode reads every node of a set on all processors. Many goroutines call look concurrently, each with its
// own Inspector, created by inspector; it gets the error of the read instead of a node. take gets the results
// for one chunk, from one goroutine at a time. The error is ctx's.
func EachNode[T any](ctx context.Context, s cas.Store, inspector func() *cas.Inspector, set Set,
	look func(*cas.Inspector, ID, cas.Node, error) T, take func([]T)) error {
	var (
		next atomic.Int64
		mu   sync.Mutex
		wg   sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			own := inspector()
			for ctx.Err() == nil {
				begin := int(next.Add(chunk)) - chunk
				if begin >= set.Len() {
					return
				}
				var results []T
				for id := begin; id < min(begin+chunk, set.Len()) && ctx.Err() == nil; id++ {
					n, err := s.Get(ctx, set.Hash(ID(id)))
					if errors.Is(err, context.Canceled) {
						return
					}
					results = append(results, look(own, ID(id), n, err))
				}
				mu.Lock()
				take(results)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
