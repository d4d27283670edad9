package diagram

import (
	"math"
	"slices"
)

// Distances, in pixels.
const (
	nodeGap   = 34.0 // between nodes
	bendGap   = 22.0 // between a bend and anything else
	layerGap  = 20.0 // between a layer of nodes and one of bends
	portGap   = 18.0 // between the ends of two routes at a node
	portInset = 16.0 // from a node's corner
)

// rounds is how often the boxes are moved towards those they are joined with.
const rounds = 60

// placeAcross gives every box its x, keeping the order of the layers: each goes
// as near as it can to the middle of what it is joined with. Bends count for
// more than nodes, which keeps long routes straight.
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
			layer, both := j, i >= rounds/2
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

// straighten makes each route upright as far as its bends have room to move.
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
			if to == from { // no room at all, but for rounding
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

// room is how far a bend can be moved between its neighbours.
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

// apart is the least distance between the centres of two neighbours.
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

// pull is where a box would like to be, and how strongly. In the end a bend
// goes where the whole of its route is, however far that is.
func (l *layout) pull(b int, above, below bool) (x, weight float64) {
	sum := 0.0
	if bends := l.boxes[b].row; above && below && len(bends) > 1 {
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

// pack finds the places nearest to what is wanted (least squares, weighted)
// that keep the order and the distances: apart[i] is that of i to i-1.
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
		// Neighbours that would overlap move as one from here on.
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

// placeDown gives every layer its height and its place.
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

// size is the whole drawing's.
func (l *layout) size() (w, h float64) {
	for _, b := range l.boxes {
		w = max(w, b.x+b.w/2)
	}
	last := len(l.layers) - 1
	return w, l.top[last] + l.height[last]
}
