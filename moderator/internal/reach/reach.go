// Package reach determines which roles have answered at a point of a graph.
//
// Each role has two points: its incoming edges end at the first, and its outgoing edges start at the second.
// A path includes an answer of a role if it passes the role's second point. Conditions are ignored: every
// edge counts.
package reach

// Point is a place between two edges.
type Point int

// The points that don't belong to roles.
const (
	Start Point = iota
	End
	firstRole
)

// maxWork bounds the searches in one graph, in points and edges. Only generated graphs exceed it; anything
// still unknown then counts as both possible and certain.
const maxWork = 20_000_000

// Graph is a graph of roles. Build it with [New] and [Graph.Add] before querying it.
type Graph struct {
	next  [][]Point
	in    map[string]Point
	walks map[[2]Point][]bool
	work  int
}

// New returns a graph of roles without edges.
func New(roles []string) *Graph {
	g := &Graph{in: map[string]Point{}, walks: map[[2]Point][]bool{}}
	for _, role := range roles {
		if _, known := g.in[role]; !known {
			g.in[role] = firstRole + Point(2*len(g.in))
		}
	}
	g.next = make([][]Point, int(firstRole)+2*len(g.in))
	for _, p := range g.in {
		g.Add(p, p+1)
	}
	return g
}

// Add adds an edge.
func (g *Graph) Add(from, to Point) { g.next[from] = append(g.next[from], to) }

// In returns the point where edges enter a role; false if the role doesn't exist.
func (g *Graph) In(role string) (Point, bool) {
	p, ok := g.in[role]
	return p, ok
}

// Out returns the point where edges leave a role.
func (g *Graph) Out(role string) Point { return g.in[role] + 1 }

// Reached reports whether a path leads from the start to a point.
func (g *Graph) Reached(at Point) bool {
	seen := g.from(Start, Start)
	return seen == nil || seen[at]
}

// Avoids reports whether a path leads from one point to another without an answer of a role.
func (g *Graph) Avoids(role string, from, to Point) bool {
	seen := g.from(from, g.Out(role))
	return seen == nil || seen[to]
}

// Answered reports whether a role might have answered at a point, and whether it has on every path.
func (g *Graph) Answered(role string, at Point) (possible, certain bool) {
	out := g.Out(role)
	after, around := g.from(out, Start), g.from(Start, out)
	if after == nil || around == nil {
		return true, true
	}
	possible = g.Reached(out) && after[at]
	return possible, possible && !around[at]
}

// from returns the points that can be reached from begin without passing without. It returns nil if the
// search exceeds maxWork.
func (g *Graph) from(begin, without Point) []bool {
	key := [2]Point{begin, without}
	if seen, ok := g.walks[key]; ok {
		return seen
	}
	if g.work > maxWork {
		return nil
	}
	seen := make([]bool, len(g.next))
	queue := []Point{begin}
	g.work += len(g.next)
	for len(queue) > 0 {
		p := queue[0]
		if queue = queue[1:]; seen[p] || p == without && p != Start {
			continue
		}
		seen[p] = true
		g.work += len(g.next[p])
		queue = append(queue, g.next[p]...)
	}
	g.walks[key] = seen
	return seen
}
