// Package census numbers all nodes of a store, so that fsck and redaction can hold the whole graph of references
// in memory: a million nodes with ten million refs take about 100 MB.
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

// Set is a sorted list of hashes, as numbers. The index of a hash is its ID.
type Set struct{ sorted []uint64 }

// List lists the nodes of a store. It passes errors to fault; the set lacks the affected nodes. It fails with ctx.
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

// Hash returns the hash of a node of the set.
func (s Set) Hash(id ID) cas.Hash { return protocol.HashOf(s.sorted[id]) }

// ID returns the ID of a node, and whether the set has it. h must be valid.
func (s Set) ID(h cas.Hash) (ID, bool) {
	i, ok := slices.BinarySearch(s.sorted, h.Number())
	return ID(i), ok
}

// chunk is the number of nodes that a worker processes at a time: enough that it rarely waits for the others.
const chunk = 128

// ordered is a store that knows in which order reading its nodes is fastest.
type ordered interface {
	InOrder(ctx context.Context) ([]cas.Hash, error)
}

// order returns the IDs of a set in the order in which to read the nodes.
func order(ctx context.Context, s cas.Store, set Set) []ID {
	ids := make([]ID, 0, set.Len())
	placed := make([]bool, set.Len())
	if o, ok := s.(ordered); ok {
		all, _ := o.InOrder(ctx) // on an error, the order is only slower
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

// EachNode reads every node of a set on all processors. Several goroutines call look concurrently, each with its
// own Inspector, created by inspector. look gets a node or the error of reading it. take gets the results of some
// nodes, in no order, from one goroutine at a time. EachNode fails only with ctx.
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

// Graph records references between nodes. Nodes outside of the Set are absent from the store; they have IDs from
// [Set.Len] on.
type Graph struct {
	Set
	absentID map[uint64]ID
	absent   []cas.Hash
	edges    []edge
}

type edge struct{ from, to ID }

// NewGraph returns the graph of a set, without edges.
func NewGraph(s Set) *Graph { return &Graph{Set: s, absentID: map[uint64]ID{}} }

// Node returns the ID of a valid hash. It adds an absent node to the graph.
func (g *Graph) Node(h cas.Hash) ID {
	if id, ok := g.ID(h); ok {
		return id
	}
	n := h.Number()
	id, ok := g.absentID[n]
	if !ok {
		id = ID(g.Len() + len(g.absent))
		g.absentID[n] = id
		g.absent = append(g.absent, h)
	}
	return id
}

// Name returns the hash of a node of the graph, which may be absent.
func (g *Graph) Name(id ID) cas.Hash {
	if int(id) < g.Len() {
		return g.Hash(id)
	}
	return g.absent[int(id)-g.Len()]
}

// Absent returns the IDs of the absent nodes.
func (g *Graph) Absent() []ID {
	ids := make([]ID, len(g.absent))
	for i := range ids {
		ids[i] = ID(g.Len() + i)
	}
	return ids
}

// Add records that a node references others, which may be absent.
func (g *Graph) Add(from ID, refs ...cas.Hash) {
	for _, r := range refs {
		g.edges = append(g.edges, edge{from, g.Node(r)})
	}
}

// Walker visits the nodes that are reachable along links. It is not safe for concurrent use.
type Walker struct {
	start []uint32 // links of id are to[start[id]:start[id+1]]
	to    []ID
	seen  []uint32 // round of the last visit of each node, so that no call of Reach has to clear it
	round uint32   // number of calls of Reach
	stack []ID
}

// Up returns a Walker whose links lead from each node to the nodes that reference it. Don't change the graph later.
func (g *Graph) Up() *Walker {
	n := g.Len() + len(g.absent)
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

// Reach calls visit once for every node reachable from some nodes, including these, in no order. It stops when
// visit returns false.
func (w *Walker) Reach(from []ID, visit func(ID) bool) {
	w.round++
	w.stack = w.stack[:0]
	w.push(from)
	for len(w.stack) > 0 {
		id := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if !visit(id) {
			return
		}
		w.push(w.to[w.start[id]:w.start[id+1]])
	}
}

func (w *Walker) push(ids []ID) {
	for _, id := range ids {
		if w.seen[id] != w.round {
			w.seen[id] = w.round
			w.stack = append(w.stack, id)
		}
	}
}
