package census

import "github.com/united-workforce/uwf/cas"

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

// Links contains the edges of a graph by their starting node.
type Links struct {
	start []uint32 // edges of id are to[start[id]:start[id+1]]
	to    []ID
}

// Up returns the links from each node to the nodes that reference it.
func (g *Graph) Up() Links {
	n := g.Len() + len(g.extra)
	l := Links{start: make([]uint32, n+1), to: make([]ID, len(g.edges))}
	for _, e := range g.edges {
		l.start[e.to+1]++
	}
	for i := range n {
		l.start[i+1] += l.start[i]
	}
	next := append([]uint32(nil), l.start[:n]...)
	for _, e := range g.edges {
		l.to[next[e.to]] = e.from
		next[e.to]++
	}
	return l
}

// Walker visits what is reachable along links, repeatedly without clearing its state.
type Walker struct {
	links Links
	seen  []uint32 // round of the last visit of each node
	round uint32
	queue []ID
}

// NewWalker returns a Walker along l.
func NewWalker(l Links) *Walker { return &Walker{links: l, seen: make([]uint32, len(l.start))} }

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
		w.enqueue(w.links.to[w.links.start[id]:w.links.start[id+1]])
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
