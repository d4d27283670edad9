package diagram

import (
	"fmt"
	"strings"
)

// Text draws the graph as a tree that begins at $START, in lines of at most
// width columns (0: no limit), unless a name is too long for that. A node that has been drawn above is marked ↑ and
// not drawn again. A branch that would run out of the page is marked ↓ and
// drawn below, at the margin.
func (g Graph) Text(width int) string {
	t := &tree{g: g, ways: g.ways(), width: width, drawn: make([]bool, len(g.Nodes)), queued: make([]bool, len(g.Nodes))}
	t.line("", g.Name)
	if g.Description != "" {
		t.line("", g.Description)
	}
	t.queue = []int{0}
	for {
		for len(t.queue) > 0 {
			node := t.queue[0]
			t.queue = t.queue[1:]
			t.root(node)
		}
		rest := t.undrawn()
		if rest < 0 {
			return t.out.String()
		}
		t.queue = []int{rest}
	}
}

type tree struct {
	g             Graph
	ways          [][]int
	width         int
	drawn, queued []bool // queued: drawn later, at the margin
	queue         []int
	out           strings.Builder
}

// undrawn is the first role that no way from what is drawn leads to, or -1.
func (t *tree) undrawn() int {
	for i, n := range t.g.Nodes {
		if n.Kind == Role && !t.drawn[i] {
			return i
		}
	}
	return -1
}

func (t *tree) root(node int) {
	n := t.g.Nodes[node]
	t.out.WriteByte('\n')
	t.line(n.shownBy(Edge{Count: 1}), n.about()) // no edge leads there that is drawn
	t.drawn[node] = true
	t.branches(node, "")
}

// branches draws the ways on from a node, each line behind the given margin.
func (t *tree) branches(node int, margin string) {
	bar := "│  "
	if len(t.ways[node]) == 0 {
		bar = "   "
	}
	for _, line := range t.g.Nodes[node].lanes() {
		t.line(margin+bar, line)
	}
	for i, way := range t.ways[node] {
		corner, below := "├─ ", "│  "
		if i == len(t.ways[node])-1 {
			corner, below = "└─ ", "   "
		}
		t.branch(t.g.Edges[way], margin+corner, margin+below)
	}
}

func (t *tree) branch(e Edge, head, margin string) {
	n := t.g.Nodes[e.To]
	switch {
	case n.Kind != Role:
		t.line(t.way(head, e.label(), n.shownBy(e)), "")
	case t.drawn[e.To]:
		t.line(t.way(head, e.label(), n.Name+" ↑"), "")
	case t.queued[e.To] || t.tooDeep(margin):
		t.line(t.way(head, e.label(), n.Name+" ↓"), "")
		if !t.queued[e.To] {
			t.queued[e.To] = true
			t.queue = append(t.queue, e.To)
		}
	default:
		t.drawn[e.To] = true
		t.line(t.way(head, e.label(), n.shownBy(e)), n.about())
		t.branches(e.To, margin)
	}
}

// way is a label and where it leads. If both are too long for the line, the
// label is cut: it may be a whole expression.
func (t *tree) way(head, label, target string) string {
	const least = 8
	if label == "" {
		return head + target
	}
	target = " → " + target
	if t.width > 0 {
		label = cut(label, max(least, t.width-columns(head)-columns(target)))
	}
	return head + label + target
}

// tooDeep reports whether a branch behind this margin should be drawn below. It
// also bounds the recursion where width does not.
func (t *tree) tooDeep(margin string) bool {
	const most = 60
	depth := columns(margin)
	return depth > most || t.width > 0 && depth > t.width/3
}

// line writes a node and what is said of it. Only that is cut to the width:
// names are never cut, or they could not be typed.
func (t *tree) line(head, note string) {
	if head != "" && note != "" {
		head += "  "
	}
	if room := t.width - columns(head); note != "" && (t.width == 0 || room > 0) {
		head += cut(note, room)
	}
	fmt.Fprintln(&t.out, strings.TrimRight(head, " "))
}
