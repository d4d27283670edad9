package diagram

import (
	"cmp"
	"slices"
)

// sweeps is how often the layers are put in order, down and up. More changes
// little.
const sweeps = 24

// untangle orders the boxes of each layer so that few routes cross: each box
// goes where the boxes are that it is joined with, in the layer above and in
// the one below by turns; the best order that was met stays.
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

func (l *layout) sortLayer(layer int, down bool) {
	neighbour := layer - 1
	if !down {
		neighbour = layer + 1
	}
	if neighbour < 0 || neighbour >= len(l.layers) {
		return
	}
	place := l.places(neighbour)
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
	slices.SortStableFunc(l.layers[layer], func(a, b int) int { return cmp.Compare(want[a], want[b]) })
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

// swap exchanges neighbours wherever that saves crossings.
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

// crossed counts the crossings of the routes from a box with those from the box
// at its right.
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

// crossings counts all crossings between neighbouring layers.
func (l *layout) crossings() int {
	total := 0
	for layer := 0; layer+1 < len(l.layers); layer++ {
		place := l.places(layer + 1)
		var ends []int // of the joins, from left to right
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

// inversions counts the pairs that stand in the wrong order, sorting the list.
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
