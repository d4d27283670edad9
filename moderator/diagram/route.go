package diagram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ports are the places at the edges of the nodes where routes end: for each
// route its x at the upper node and at the lower one.
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

// spread gives the routes at one side of a node their ports: straight below or
// above their next bend, as far as the node is wide.
func (l *layout) spread(node int, routes []int, ports []float64, bend func(route) int) {
	at := func(r int) float64 { return l.boxes[bend(l.routes[r])].x }
	slices.SortStableFunc(routes, func(a, b int) int { return cmp.Compare(at(a), at(b)) })
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

// path draws a route as an SVG path: down through its bends, each passed
// upright, so that it touches nothing else in their layers. A route back is
// drawn from below.
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

// nodeTop is the upper edge of a node, which stands in the middle of its layer.
func (l *layout) nodeTop(node int) float64 {
	layer := l.layerOf(node)
	return l.top[layer] + (l.height[layer]-l.boxes[node].h)/2
}
