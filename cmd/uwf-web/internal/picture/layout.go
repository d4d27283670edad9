package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/util/sorting"
)

// markLoops marks the edges that close a loop (Back), so that the others are acyclic. The graph has marks from a
// depth-first traversal; this heuristic finds better ones for a picture: few, so that most edges lead down.
func markLoops(g diagram.Graph) diagram.Graph {
	g.Edges = slices.Clone(g.Edges)
	_, order := ranks(g)
	loop := loops(g)
	for _, members := range membersInOrder(order, loop) {
		members = orderLoop(g, members)
		place := map[int]int{}
		for i, n := range members {
			place[n] = i
		}
		for i := range g.Edges {
			e := &g.Edges[i]
			if loop[e.From] == loop[e.To] && loop[e.From] == loop[members[0]] {
				e.Back = place[e.From] >= place[e.To]
			}
		}
	}
	return g
}

// loops numbers the strongly connected components: nodes share a number if each can be reached from the other.
func loops(g diagram.Graph) []int {
	reach := make([][]bool, len(g.Nodes))
	ways := g.Ways()
	for n := range g.Nodes {
		reach[n] = make([]bool, len(g.Nodes))
		for queue := []int{n}; len(queue) > 0; queue = queue[1:] {
			for _, way := range ways[queue[0]] {
				if to := g.Edges[way].To; !reach[n][to] {
					reach[n][to] = true
					queue = append(queue, to)
				}
			}
		}
	}
	number := make([]int, len(g.Nodes))
	for n := range number {
		number[n] = n
		for m := range n {
			if reach[n][m] && reach[m][n] {
				number[n] = m
				break
			}
		}
	}
	return number
}

// membersInOrder lists the members of each loop in the given order. The first is the one where the loop is entered.
func membersInOrder(order, loop []int) [][]int {
	members := map[int][]int{}
	var numbers []int
	for _, n := range order {
		if members[loop[n]] == nil {
			numbers = append(numbers, loop[n])
		}
		members[loop[n]] = append(members[loop[n]], n)
	}
	var lists [][]int
	for _, number := range numbers {
		lists = append(lists, members[number])
	}
	return lists
}

// orderLoop orders the members of a loop. It starts from the given order and from the order of
// reading, and keeps the better result.
func orderLoop(g diagram.Graph, members []int) []int {
	read := slices.Sorted(slices.Values(members)) // nodes are numbered in the order of reading
	sift(g, members)
	if read[0] != members[0] {
		return members
	}
	sift(g, read)
	if cost(g, read) < cost(g, members) {
		return read
	}
	return members
}

// sift moves each member except the first, where the loop is entered, to its best position until no move
// improves the order.
func sift(g diagram.Graph, members []int) {
	const most = 60 // each round takes time proportional to the square of this, times the edges
	if len(members) > most {
		return
	}
	best := cost(g, members)
	for better, rounds := true, 0; better && rounds < 10; rounds++ {
		better = false
		for _, n := range slices.Clone(members[1:]) {
			at := slices.Index(members, n)
			rest := slices.Delete(slices.Clone(members), at, at+1)
			for i := 1; i < len(members); i++ {
				moved := slices.Insert(slices.Clone(rest), i, n)
				if c := cost(g, moved); c < best {
					best, better = c, true
					copy(members, moved)
				}
			}
		}
	}
}

// cost counts the backward edges for an order of a loop's members. It adds a penalty for a member that no forward
// edge enters, because such a node would be at the top, where no reader expects it.
func cost(g diagram.Graph, members []int) int {
	const penalty = 4 // backward edges
	place := make(map[int]int, len(members))
	for i, n := range members {
		place[n] = i
	}
	back := 0
	entered := map[int]bool{members[0]: true}
	for _, e := range g.Edges {
		to, inside := place[e.To]
		if !inside {
			continue
		}
		from, inside := place[e.From]
		switch {
		case !inside || from < to:
			entered[e.To] = true
		case from > to:
			back++
		}
	}
	return back + penalty*(len(members)-len(entered))
}

// The layout follows Sugiyama: nodes are placed in layers, so that all edges except those that close a loop
// lead down. Between two layers of nodes is a layer of bends, one for each edge that passes through. A label
// takes the place of a bend, so it never overlaps a node, another label or another edge.

// box is an element with a position: a node, or a bend of a route.
type box struct {
	node  int // -1 for a bend
	label []string
	w, h  float64
	x     float64 // center
	up    []int   // boxes in the layer above that are connected to this one
	down  []int
	bends []int // for a bend: all bends of its route
}

// route combines all edges from one node to another, drawn as one line. The route from a node to itself has
// no bends.
type route struct {
	from, to int // nodes
	labels   []string
	back     bool  // closes a loop, so it leads up
	part     bool  // to a child's role, or taken only on failure; drawn dotted
	count    int   // how often a run took it
	bends    []int // from the upper node to the lower
	layer    int   // layer of the first bend
}

type layout struct {
	g      diagram.Graph
	boxes  []box // the first len(g.Nodes) are the nodes
	routes []route
	layers [][]int   // boxes from left to right; nodes in even layers, bends in odd ones
	top    []float64 // y of each layer's upper edge
	height []float64
}

// newLayout computes the position of every box of a graph whose loops are marked.
func newLayout(g diagram.Graph) *layout {
	l := &layout{g: g}
	for i, n := range g.Nodes {
		b := nodeBox(n)
		b.node = i
		l.boxes = append(l.boxes, b)
	}
	l.routes = routesOf(g)
	rank, _ := ranks(g)
	l.placeInLayers(rank)
	l.untangle()
	l.placeAcross()
	l.placeDown()
	return l
}

// routesOf combines the edges between the same two nodes.
func routesOf(g diagram.Graph) []route {
	var routes []route
	index := map[[2]int]int{}
	for _, e := range g.Edges {
		key := [2]int{e.From, e.To}
		i, ok := index[key]
		if !ok {
			i = len(routes)
			index[key] = i
			routes = append(routes, route{from: e.From, to: e.To, back: e.Back, part: e.Part || e.Failure})
		}
		routes[i].count += e.Count
		label := e.Text()
		if label == "" && ok {
			label = "always"
		}
		if label != "" {
			routes[i].labels = append(routes[i].labels, diagram.Cut(label, maxLabel))
		}
	}
	for i := range routes {
		if n := len(routes[i].labels); n > maxLabels {
			routes[i].labels = append(slices.Clone(routes[i].labels[:maxLabels-1]), "…")
		}
	}
	return routes
}

// ranks assigns each node a layer: one below its lowest predecessor. $END is at the bottom. It also returns the
// nodes in an order in which all edges lead forward, except those that close a loop.
func ranks(g diagram.Graph) (rank, order []int) {
	rank = make([]int, len(g.Nodes))
	waits := make([]int, len(g.Nodes)) // number of incoming edges not yet handled
	for _, e := range g.Edges {
		if !e.Back {
			waits[e.To]++
		}
	}
	ways := g.Ways()
	var ready []int
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	lowest := 0
	for len(ready) > 0 {
		at := ready[0]
		order = append(order, at)
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
	if last := len(g.Nodes) - 1; g.Nodes[last].Kind == diagram.End {
		rank[last] = lowest
	}
	return rank, order
}

// placeInLayers assigns nodes and bends to their layers, in an initial order.
func (l *layout) placeInLayers(rank []int) {
	l.layers = make([][]int, 2*slices.Max(rank)+1)
	for i, r := range rank {
		l.layers[2*r] = append(l.layers[2*r], i)
	}
	for i := range l.routes {
		r := &l.routes[i]
		upper, lower, labelled := r.from, r.to, 2*rank[r.from]+1 // the label is next to the route's start
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
			l.boxes[b].bends = r.bends
		}
	}
}

func (l *layout) join(above, below int) {
	l.boxes[above].down = append(l.boxes[above].down, below)
	l.boxes[below].up = append(l.boxes[below].up, above)
}

// sweeps is the number of passes that order the layers, down and up. More passes change little.
const sweeps = 24

// untangle orders the boxes of each layer to reduce crossings. It alternately moves each box towards its
// neighbors in the layers above and below, and keeps the best order found.
func (l *layout) untangle() {
	best, fewest := l.order(), l.crossings()
	for i := range sweeps {
		down := i%2 == 0
		for j := range l.layers {
			layer := j
			if !down {
				layer = len(l.layers) - 1 - j
			}
			l.sortLayer(layer, down)
		}
		l.swap()
		if n := l.crossings(); n < fewest {
			best, fewest = l.order(), n
		}
	}
	l.layers = best
}

func (l *layout) order() [][]int {
	order := make([][]int, len(l.layers))
	for i, layer := range l.layers {
		order[i] = slices.Clone(layer)
	}
	return order
}

// sortLayer sorts a layer by the mean position of each box's neighbors: those above if down is set, else below.
func (l *layout) sortLayer(layer int, down bool) {
	neighbor := layer - 1
	if !down {
		neighbor = layer + 1
	}
	if neighbor < 0 || neighbor >= len(l.layers) {
		return
	}
	place := l.places(neighbor)
	want := map[int]float64{}
	for i, b := range l.layers[layer] {
		want[b] = float64(i)
		joined := l.joined(b, down)
		if len(joined) == 0 {
			continue
		}
		sum := 0
		for _, n := range joined {
			sum += place[n]
		}
		want[b] = float64(sum) / float64(len(joined))
	}
	sorting.Stable(l.layers[layer], func(a, b int) int { return cmp.Compare(want[a], want[b]) })
}

func (l *layout) joined(b int, above bool) []int {
	if above {
		return l.boxes[b].up
	}
	return l.boxes[b].down
}

func (l *layout) places(layer int) map[int]int {
	place := make(map[int]int, len(l.layers[layer]))
	for i, b := range l.layers[layer] {
		place[b] = i
	}
	return place
}

// swap exchanges neighbors wherever that reduces crossings.
func (l *layout) swap() {
	for layer := range l.layers {
		row := l.layers[layer]
		var above, below map[int]int
		if layer > 0 {
			above = l.places(layer - 1)
		}
		if layer+1 < len(l.layers) {
			below = l.places(layer + 1)
		}
		for i := 0; i+1 < len(row); i++ {
			a, b := row[i], row[i+1]
			as := crossed(l.boxes[a].up, l.boxes[b].up, above) + crossed(l.boxes[a].down, l.boxes[b].down, below)
			bs := crossed(l.boxes[b].up, l.boxes[a].up, above) + crossed(l.boxes[b].down, l.boxes[a].down, below)
			if bs < as {
				row[i], row[i+1] = b, a
			}
		}
	}
}

// crossed counts the crossings between the routes of two adjacent boxes.
func crossed(left, right []int, place map[int]int) int {
	n := 0
	for _, a := range left {
		for _, b := range right {
			if place[a] > place[b] {
				n++
			}
		}
	}
	return n
}

// crossings counts all crossings between neighboring layers.
func (l *layout) crossings() int {
	total := 0
	for layer := 0; layer+1 < len(l.layers); layer++ {
		place := l.places(layer + 1)
		var ends []int // connections, from left to right
		for _, b := range l.layers[layer] {
			from := len(ends)
			for _, d := range l.boxes[b].down {
				ends = append(ends, place[d])
			}
			slices.Sort(ends[from:])
		}
		total += inversions(ends)
	}
	return total
}

// inversions counts the pairs in the wrong order, and sorts the list.
func inversions(list []int) int {
	if len(list) < 2 {
		return 0
	}
	left, right := slices.Clone(list[:len(list)/2]), slices.Clone(list[len(list)/2:])
	n := inversions(left) + inversions(right)
	for i := range list {
		if len(right) == 0 || len(left) > 0 && left[0] <= right[0] {
			list[i], left = left[0], left[1:]
			continue
		}
		n += len(left)
		list[i], right = right[0], right[1:]
	}
	return n
}

// Distances, in pixels.
const (
	nodeGap   = 34.0 // between nodes
	bendGap   = 22.0 // between a bend and anything else
	layerGap  = 20.0 // between a layer of nodes and one of bends
	portGap   = 18.0 // between the ends of two routes at a node
	portInset = 16.0 // from a node's corner
)

// rounds is the number of passes that move boxes towards their neighbors.
const rounds = 60

// placeAcross computes the x of every box and keeps the order of the layers. Each box is placed as close as
// possible to the middle of its neighbors. Bends weigh more than nodes, which keeps long routes straight.
func (l *layout) placeAcross() {
	for _, layer := range l.layers {
		x := 0.0
		for i, b := range layer {
			if i > 0 {
				x += l.apart(layer[i-1], b)
			}
			l.boxes[b].x = x
		}
	}
	for i := range rounds {
		for j := range l.layers {
			layer, both := j, i >= rounds/2 // first down and up in turns, then towards both sides
			if i%2 == 1 {
				layer = len(l.layers) - 1 - j
			}
			l.settle(l.layers[layer], i%2 == 0 || both, i%2 == 1 || both)
		}
	}
	for range rounds / 10 {
		l.straighten()
	}
	l.shiftToOrigin()
}

// straighten makes each route vertical where its bends have room to move.
func (l *layout) straighten() {
	for _, r := range l.routes {
		for from := 0; from < len(r.bends); {
			left, right, sum := math.Inf(-1), math.Inf(1), 0.0
			to := from
			for ; to < len(r.bends); to++ {
				a, b := l.room(r.bends[to], r.layer+to)
				if max(left, a) > min(right, b) {
					break
				}
				left, right = max(left, a), min(right, b)
				sum += l.boxes[r.bends[to]].x
			}
			if to == from { // no room, apart from rounding
				from++
				continue
			}
			x := min(max(sum/float64(to-from), left), right)
			for _, b := range r.bends[from:to] {
				l.boxes[b].x = x
			}
			from = to
		}
	}
}

// room returns how far a bend can move between its neighbors.
func (l *layout) room(bend, layer int) (left, right float64) {
	left, right = math.Inf(-1), math.Inf(1)
	row := l.layers[layer]
	at := slices.Index(row, bend)
	if at > 0 {
		left = l.boxes[row[at-1]].x + l.apart(row[at-1], bend)
	}
	if at+1 < len(row) {
		right = l.boxes[row[at+1]].x - l.apart(bend, row[at+1])
	}
	return left, right
}

// apart returns the minimum distance between the centers of two adjacent boxes.
func (l *layout) apart(left, right int) float64 {
	gap := bendGap
	if l.boxes[left].node >= 0 && l.boxes[right].node >= 0 {
		gap = nodeGap
	}
	return (l.boxes[left].w+l.boxes[right].w)/2 + gap
}

// settle moves the boxes of a layer towards those above, below or both.
func (l *layout) settle(layer []int, above, below bool) {
	want := make([]float64, len(layer))
	weight := make([]float64, len(layer))
	apart := make([]float64, len(layer))
	for i, b := range layer {
		if i > 0 {
			apart[i] = l.apart(layer[i-1], b)
		}
		want[i], weight[i] = l.pull(b, above, below)
	}
	for i, x := range pack(want, weight, apart) {
		l.boxes[layer[i]].x = x
	}
}

// pull returns the preferred x of a box, and its weight. In the second half of the passes (above and below) a bend
// follows its whole route, however far away that is.
func (l *layout) pull(b int, above, below bool) (x, weight float64) {
	sum := 0.0
	if bends := l.boxes[b].bends; above && below && len(bends) > 1 {
		const straight = 12
		for _, other := range bends {
			sum += l.boxes[other].x
		}
		sum, weight = straight*sum/float64(len(bends)), straight
	}
	add := func(others []int) {
		for _, o := range others {
			w := 1.0
			if l.boxes[b].node < 0 && l.boxes[o].node < 0 {
				w = 4
			}
			sum += w * l.boxes[o].x
			weight += w
		}
	}
	if above {
		add(l.boxes[b].up)
	}
	if below {
		add(l.boxes[b].down)
	}
	if weight == 0 {
		return l.boxes[b].x, 0.1
	}
	return sum / weight, weight
}

// pack returns the positions closest to want (weighted least squares) that keep the order and the distances:
// apart[i] is the distance of i from i-1.
func pack(want, weight, apart []float64) []float64 {
	type block struct {
		sum, weight float64
		n           int
	}
	var blocks []block
	offset := make([]float64, len(want))
	for i := range want {
		if i > 0 {
			offset[i] = offset[i-1] + apart[i]
		}
		blocks = append(blocks, block{weight[i] * (want[i] - offset[i]), weight[i], 1})
		// Neighbors that would overlap move together from here on.
		for n := len(blocks); n > 1 && blocks[n-2].sum/blocks[n-2].weight > blocks[n-1].sum/blocks[n-1].weight; n-- {
			last := blocks[n-1]
			blocks = blocks[:n-1]
			blocks[n-2].sum += last.sum
			blocks[n-2].weight += last.weight
			blocks[n-2].n += last.n
		}
	}
	x := make([]float64, 0, len(want))
	for _, b := range blocks {
		for range b.n {
			x = append(x, b.sum/b.weight+offset[len(x)])
		}
	}
	return x
}

func (l *layout) shiftToOrigin() {
	left := 0.0
	for i, b := range l.boxes {
		if x := b.x - b.w/2; i == 0 || x < left {
			left = x
		}
	}
	for i := range l.boxes {
		l.boxes[i].x -= left
	}
}

// placeDown computes the height and position of every layer.
func (l *layout) placeDown() {
	l.top = make([]float64, len(l.layers))
	l.height = make([]float64, len(l.layers))
	y := 0.0
	for i, layer := range l.layers {
		for _, b := range layer {
			l.height[i] = max(l.height[i], l.boxes[b].h)
		}
		l.top[i] = y
		y += l.height[i] + layerGap
	}
}

// size returns the size of the whole drawing.
func (l *layout) size() (w, h float64) {
	for _, b := range l.boxes {
		w = max(w, b.x+b.w/2)
	}
	last := len(l.layers) - 1
	return w, l.top[last] + l.height[last]
}

// ports returns the points where routes meet their nodes: for each route its x at the upper and at the lower
// node.
func (l *layout) ports() (upper, lower []float64) {
	upper, lower = make([]float64, len(l.routes)), make([]float64, len(l.routes))
	below, above := make([][]int, len(l.g.Nodes)), make([][]int, len(l.g.Nodes))
	for i, r := range l.routes {
		if len(r.bends) == 0 {
			continue
		}
		from, to := r.from, r.to
		if r.back {
			from, to = to, from
		}
		below[from] = append(below[from], i)
		above[to] = append(above[to], i)
	}
	for n := range l.g.Nodes {
		l.spread(n, below[n], upper, func(r route) int { return r.bends[0] })
		l.spread(n, above[n], lower, func(r route) int { return r.bends[len(r.bends)-1] })
	}
	return upper, lower
}

// spread assigns ports to the routes at one side of a node: directly below or above their next bend, within
// the width of the node.
func (l *layout) spread(node int, routes []int, ports []float64, bend func(route) int) {
	at := func(r int) float64 { return l.boxes[bend(l.routes[r])].x }
	sorting.Stable(routes, func(a, b int) int { return cmp.Compare(at(a), at(b)) })
	b := l.boxes[node]
	half := nodeBox(l.g.Nodes[node]).w/2 - portInset
	left, right := b.x-half, b.x+half
	gap := portGap
	if n := float64(len(routes) - 1); n > 0 {
		gap = min(gap, (right-left)/n)
	}
	want, weight, apart := make([]float64, len(routes)), make([]float64, len(routes)), make([]float64, len(routes))
	for i, r := range routes {
		want[i], weight[i], apart[i] = min(max(at(r), left), right), 1, gap
	}
	for i, x := range pack(want, weight, apart) {
		ports[routes[i]] = min(max(x, left+float64(i)*gap), right-float64(len(routes)-1-i)*gap)
	}
}

// path returns a route as an SVG path. It passes each bend vertically, so that it touches nothing else in
// their layers. A backward route is drawn from below.
func (l *layout) path(r route, upperX, lowerX float64) string {
	upper, lower := r.from, r.to
	if r.back {
		upper, lower = lower, upper
	}
	type point struct{ x, y float64 }
	upperLayer := l.layerOf(upper)
	points := []point{{upperX, l.nodeTop(upper) + l.boxes[upper].h}}
	if bottom := l.top[upperLayer] + l.height[upperLayer]; bottom > points[0].y {
		points = append(points, point{upperX, bottom})
	}
	for i, b := range r.bends {
		layer := upperLayer + 1 + i
		points = append(points, point{l.boxes[b].x, l.top[layer]}, point{l.boxes[b].x, l.top[layer] + l.height[layer]})
	}
	lowerLayer := upperLayer + 1 + len(r.bends)
	if l.nodeTop(lower) > l.top[lowerLayer] {
		points = append(points, point{lowerX, l.top[lowerLayer]})
	}
	points = append(points, point{lowerX, l.nodeTop(lower)})
	if r.back {
		slices.Reverse(points)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%.1f %.1f", points[0].x, points[0].y)
	for i := 1; i < len(points); i++ {
		p, q := points[i-1], points[i]
		if p.x == q.x {
			fmt.Fprintf(&b, "V%.1f", q.y)
			continue
		}
		middle := (p.y + q.y) / 2
		fmt.Fprintf(&b, "C%.1f %.1f %.1f %.1f %.1f %.1f", p.x, middle, q.x, middle, q.x, q.y)
	}
	return b.String()
}

func (l *layout) layerOf(node int) int {
	return slices.IndexFunc(l.layers, func(layer []int) bool { return slices.Contains(layer, node) })
}

// nodeTop returns the upper edge of a node, which is centered in its layer.
func (l *layout) nodeTop(node int) float64 {
	layer := l.layerOf(node)
	return l.top[layer] + (l.height[layer]-l.boxes[node].h)/2
}
