package diagram

import "slices"

// The layout is Sugiyama's: nodes stand in layers, so that all edges but those
// that close a loop lead down. Between two layers of nodes lies a layer of
// bends, one for each edge that passes; a label takes the place of a bend, so no
// label ever lies on a node, on another label or on a foreign edge.

// box is what takes a place: a node, or a bend of a route.
type box struct {
	node  int // -1: a bend
	label []string
	w, h  float64
	x     float64 // of the centre
	up    []int   // boxes in the layer above that a route joins with this one
	down  []int
	row   []int // of a bend: all bends of its route
}

// route is all edges from one node to another, drawn as one line. A node's way
// to itself has no bends.
type route struct {
	from, to int // nodes
	labels   []string
	back     bool
	part     bool
	count    int   // how often a run has taken it
	bends    []int // from the upper node to the lower
	layer    int   // of the first bend
}

type layout struct {
	g      Graph
	boxes  []box // the first len(g.Nodes) are the nodes
	routes []route
	layers [][]int   // boxes from left to right; nodes in even layers, bends in odd ones
	top    []float64 // of each layer
	height []float64
}

// newLayout finds a place for everything.
func newLayout(g Graph) *layout {
	l := &layout{g: g}
	for i, n := range g.Nodes {
		b := nodeBox(n)
		b.node = i
		l.boxes = append(l.boxes, b)
	}
	l.routes = routesOf(g)
	l.placeInLayers(ranks(g))
	l.untangle()
	l.placeAcross()
	l.placeDown()
	return l
}

// routesOf joins the edges between the same two nodes.
func routesOf(g Graph) []route {
	var routes []route
	index := map[[2]int]int{}
	for _, e := range g.Edges {
		key := [2]int{e.From, e.To}
		i, ok := index[key]
		if !ok {
			i = len(routes)
			index[key] = i
			routes = append(routes, route{from: e.From, to: e.To, back: e.Back, part: e.Part})
		}
		routes[i].count += e.Count
		label := e.label()
		if label == "" && ok {
			label = "always"
		}
		if label != "" {
			routes[i].labels = append(routes[i].labels, cut(label, maxLabel))
		}
	}
	for i := range routes {
		if n := len(routes[i].labels); n > maxLabels {
			routes[i].labels = append(slices.Clone(routes[i].labels[:maxLabels-1]), "…")
		}
	}
	return routes
}

// ranks gives each node its layer: one below the lowest of those that lead to
// it. $END stands at the bottom.
func ranks(g Graph) []int {
	rank := make([]int, len(g.Nodes))
	waits := make([]int, len(g.Nodes)) // for so many edges that lead here
	for _, e := range g.Edges {
		if !e.Back {
			waits[e.To]++
		}
	}
	ways := g.ways()
	var ready []int
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	lowest := 0
	for len(ready) > 0 {
		at := ready[0]
		ready = ready[1:]
		lowest = max(lowest, rank[at])
		for _, way := range ways[at] {
			e := g.Edges[way]
			if e.Back {
				continue
			}
			rank[e.To] = max(rank[e.To], rank[at]+1)
			if waits[e.To]--; waits[e.To] == 0 {
				ready = append(ready, e.To)
			}
		}
	}
	if last := len(g.Nodes) - 1; g.Nodes[last].Kind == End {
		rank[last] = lowest
	}
	return rank
}

// placeInLayers puts nodes and bends into their layers, in a first order.
func (l *layout) placeInLayers(rank []int) {
	l.layers = make([][]int, 2*slices.Max(rank)+1)
	for i, r := range rank {
		l.layers[2*r] = append(l.layers[2*r], i)
	}
	for i := range l.routes {
		r := &l.routes[i]
		upper, lower, labelled := r.from, r.to, 2*rank[r.from]+1
		if r.back {
			upper, lower, labelled = r.to, r.from, 2*rank[r.from]-1
		}
		if r.from == r.to {
			l.boxes[r.from].w += 2 * loopWidth(*r)
			continue
		}
		above := upper
		r.layer = 2*rank[upper] + 1
		for layer := 2*rank[upper] + 1; layer < 2*rank[lower]; layer++ {
			b := box{node: -1}
			if layer == labelled {
				b = labelBox(r.labels)
			}
			at := len(l.boxes)
			l.boxes = append(l.boxes, b)
			l.layers[layer] = append(l.layers[layer], at)
			r.bends = append(r.bends, at)
			l.join(above, at)
			above = at
		}
		l.join(above, lower)
		for _, b := range r.bends {
			l.boxes[b].row = r.bends
		}
	}
}

func (l *layout) join(above, below int) {
	l.boxes[above].down = append(l.boxes[above].down, below)
	l.boxes[below].up = append(l.boxes[below].up, above)
}
