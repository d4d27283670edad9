package census

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
)

// chunk is the number of nodes that a worker processes at a time.
const chunk = 128

// ordered is a store that knows the order in which its nodes are read fastest.
type ordered interface {
	InOrder(ctx context.Context) ([]cas.Hash, error)
}

// order returns the numbers of a set in the order in which to read them.
func order(ctx context.Context, s cas.Store, set Set) []ID {
	ids := make([]ID, 0, set.Len())
	placed := make([]bool, set.Len())
	if o, ok := s.(ordered); ok {
		all, _ := o.InOrder(ctx) // any order works
		for _, h := range all {
			if id, ok := set.ID(h); ok && !placed[id] {
				placed[id] = true
				ids = append(ids, id)
			}
		}
	}
	for id := range placed {
		if !placed[id] {
			ids = append(ids, ID(id))
		}
	}
	return ids
}

// EachNode reads every node of a set on all processors. Many goroutines call look concurrently, each with its
// own Inspector, created by inspector; it gets the error of the read instead of a node. take gets the results
// for one chunk, from one goroutine at a time. The error is ctx's.
func EachNode[T any](ctx context.Context, s cas.Store, inspector func() *graph.Inspector, set Set,
	look func(*graph.Inspector, ID, cas.Node, error) T, take func([]T)) error {
	var (
		next atomic.Int64
		mu   sync.Mutex
		wg   sync.WaitGroup
	)
	ids := order(ctx, s, set)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			own := inspector()
			for ctx.Err() == nil {
				begin := int(next.Add(chunk)) - chunk
				if begin >= set.Len() {
					return
				}
				var results []T
				for _, id := range ids[begin:min(begin+chunk, len(ids))] {
					n, err := s.Get(ctx, set.Hash(id))
					if ctx.Err() != nil {
						return
					}
					results = append(results, look(own, id, n, err))
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
