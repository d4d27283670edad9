package picture

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/diagram"
)

// random returns a graph of n roles with random forward edges, backward edges and self-loops.
func random(seed int64, n int) diagram.Graph {
	r := rand.New(rand.NewSource(seed))
	g := diagram.Graph{Name: "random", Nodes: []diagram.Node{{Name: "$START", Kind: diagram.Start}}}
	for i := 1; i <= n; i++ {
		g.Nodes = append(g.Nodes, diagram.Node{Name: fmt.Sprint("role-", i), Kind: diagram.Role, Description: "does what it does"})
	}
	g.Nodes = append(g.Nodes, diagram.Node{Name: "$SUSPEND", Kind: diagram.Suspend}, diagram.Node{Name: "$END", Kind: diagram.End})
	for i := range n + 1 {
		g.Edges = append(g.Edges, diagram.Edge{From: i, To: i + 1, Label: "ok"})
		for range r.Intn(3) {
			to := 1 + r.Intn(n+2)
			g.Edges = append(g.Edges, diagram.Edge{From: i, To: to, Label: "a longer label", Back: to <= i})
		}
	}
	return markLoops(g)
}

// In each layer, boxes don't overlap, and edges that don't close a loop lead down.
func TestNoOverlaps(t *testing.T) {
	t.Parallel()
	for seed := range int64(20) {
		l := newLayout(random(seed, 20))
		for _, layer := range l.layers {
			for i := 1; i < len(layer); i++ {
				a, b := l.boxes[layer[i-1]], l.boxes[layer[i]]
				require.LessOrEqual(t, a.x+a.w/2+bendGap-0.01, b.x-b.w/2)
			}
			for _, b := range layer {
				require.GreaterOrEqual(t, l.boxes[b].x-l.boxes[b].w/2, -0.01)
			}
		}
		for _, r := range l.routes {
			switch {
			case r.from == r.to:
				require.Empty(t, r.bends)
			case r.back:
				require.Greater(t, l.nodeTop(r.from), l.nodeTop(r.to))
			default:
				require.Less(t, l.nodeTop(r.from), l.nodeTop(r.to))
			}
		}
	}
}

// The graph without the marked edges is acyclic, and no edge outside a loop is marked.
func TestEveryLoopIsMarkedOnce(t *testing.T) {
	t.Parallel()
	for seed := range int64(50) {
		g := random(seed, 12)
		loop := loops(g)
		rank, _ := ranks(g)
		for _, e := range g.Edges {
			if e.Back {
				require.Equal(t, loop[e.From], loop[e.To])
			} else {
				require.Less(t, rank[e.From], rank[e.To], "ranks end only where there is no loop")
			}
		}
	}
}

func TestCrossingsAreUndone(t *testing.T) {
	t.Parallel()
	// Two roles whose edges cross unless they are swapped.
	g := diagram.Graph{Nodes: []diagram.Node{{Kind: diagram.Start}, {Kind: diagram.Role}, {Kind: diagram.Role}, {Kind: diagram.Role}, {Kind: diagram.Role}, {Kind: diagram.End}}}
	for _, e := range [][2]int{{0, 1}, {0, 2}, {1, 4}, {2, 3}, {3, 5}, {4, 5}} {
		g.Edges = append(g.Edges, diagram.Edge{From: e[0], To: e[1]})
	}
	require.Zero(t, newLayout(g).crossings())
}

func TestPackKeepsOrderAndDistance(t *testing.T) {
	t.Parallel()
	require.Equal(t, []float64{-5, 5, 50}, pack([]float64{0, 0, 50}, []float64{1, 1, 1}, []float64{0, 10, 10}))
	require.InDelta(t, 10, pack([]float64{0, 0}, []float64{1e12, 1e-12}, []float64{0, 10})[1], 0.1, "the heavier stays")
}

func TestInversions(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, inversions([]int{1, 1, 2, 3}))
	require.Equal(t, 6, inversions([]int{4, 3, 2, 1}))
	require.Equal(t, 3, inversions([]int{2, 3, 1, 1, 4})-1)
}

func TestWrap(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"one two", "three"}, wrap("one two three", 8, 2))
	require.Equal(t, []string{"one two", "three f…"}, wrap("one two three four", 8, 2))
	require.Equal(t, []string{"abcdefgh", "ijkl"}, wrap("abcdefghijkl", 8, 3))
	require.Equal(t, []string{"中文中文", "中文"}, wrap("中文中文中文", 8, 3))
	require.Empty(t, wrap("", 8, 2))
}
