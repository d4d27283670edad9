// Package census represents all nodes of a store and their references compactly. A million nodes with ten
// million refs take about 100 MB.
package census

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
)

// ID numbers the nodes of a census from 0, in the order of their hashes.
type ID = uint32

// Set is a sorted list of hashes, as numbers.
type Set struct{ sorted []uint64 }

// List lists the nodes of a store. It passes errors to fault; the set lacks the affected nodes.
func List(ctx context.Context, s cas.Store, fault func(error)) (Set, error) {
	var set Set
	for h, err := range s.All(ctx, "") {
		if ctx.Err() != nil {
			return set, ctx.Err()
		}
		if err != nil {
			fault(err)
			continue
		}
		set.sorted = append(set.sorted, h.Number())
	}
	// A listing is sorted except for directories that changed concurrently.
	if !slices.IsSorted(set.sorted) {
		slices.Sort(set.sorted)
	}
	return set, ctx.Err()
}

// Len returns the number of nodes.
func (s Set) Len() int { return len(s.sorted) }

// Hash returns the hash of a node.
func (s Set) Hash(id ID) cas.Hash { return protocol.HashOf(s.sorted[id]) }

// ID returns the number of a node; h must be valid.
func (s Set) ID(h cas.Hash) (ID, bool) {
	i, ok := slices.BinarySearch(s.sorted, h.Number())
	return ID(i), ok
}

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

// Graph records references between nodes. Referenced nodes that weren't listed have numbers from [Set.Len]
// on.
type Graph struct {
	Set
	absent map[uint64]ID
	extra  []cas.Hash
	edges  []edge
}

type edge struct{ from, to ID }

// NewGraph returns the graph of a set, without edges.
func NewGraph(s Set) *Graph { return &Graph{Set: s, absent: map[uint64]ID{}} }

// Node returns the number of a valid hash.
func (g *Graph) Node(h cas.Hash) ID {
	if id, ok := g.ID(h); ok {
		return id
	}
	n := h.Number()
	id, ok := g.absent[n]
	if !ok {
		id = ID(g.Len() + len(g.extra))
		g.absent[n] = id
		g.extra = append(g.extra, h)
	}
	return id
}

// Name returns the hash of a node of the graph.
func (g *Graph) Name(id ID) cas.Hash {
	if int(id) < g.Len() {
		return g.Hash(id)
	}
	return g.extra[int(id)-g.Len()]
}

// Absent returns the numbers of the nodes that weren't listed.
func (g *Graph) Absent() []ID {
	ids := make([]ID, len(g.extra))
	for i := range ids {
		ids[i] = ID(g.Len() + i)
	}
	return ids
}

// Add records that a node references others.
func (g *Graph) Add(from ID, refs ...cas.Hash) {
	for _, r := range refs {
		g.edges = append(g.edges, edge{from, g.Node(r)})
	}
}

// Walker visits what is reachable along links, repeatedly without clearing its state.
type Walker struct {
	start []uint32 // links of id are to[start[id]:start[id+1]]
	to    []ID
	seen  []uint32 // round of the last visit of each node
	round uint32
	queue []ID
}

// Up returns a Walker from each node to the nodes that reference it.
func (g *Graph) Up() *Walker {
	n := g.Len() + len(g.extra)
	w := &Walker{start: make([]uint32, n+1), to: make([]ID, len(g.edges)), seen: make([]uint32, n+1)}
	for _, e := range g.edges {
		w.start[e.to+1]++
	}
	for i := range n {
		w.start[i+1] += w.start[i]
	}
	next := slices.Clone(w.start[:n])
	for _, e := range g.edges {
		w.to[next[e.to]] = e.from
		next[e.to]++
	}
	return w
}

// Reach calls visit once for every node reachable from some nodes, including these. It stops when visit
// returns false.
func (w *Walker) Reach(from []ID, visit func(ID) bool) {
	w.round++
	w.queue = w.queue[:0]
	w.enqueue(from)
	for len(w.queue) > 0 {
		id := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		if !visit(id) {
			return
		}
		w.enqueue(w.to[w.start[id]:w.start[id+1]])
	}
}

func (w *Walker) enqueue(ids []ID) {
	for _, id := range ids {
		if w.seen[id] != w.round {
			w.seen[id] = w.round
			w.queue = append(w.queue, id)
		}
	}
}
