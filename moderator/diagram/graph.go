// Package diagram draws a workflow's graph as text for a terminal, and as Mermaid or DOT for other programs. The
// output is deterministic. The program uwf-web draws pictures.
//
// Names in a workflow can contain any printable character, so every format escapes its text.
package diagram

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Graph is a workflow's graph, ready to draw.
type Graph struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Nodes       []Node `json:"nodes"` // $START, the roles in order of reachability, and $SUSPEND, $FAIL and $END if used
	Edges       []Edge `json:"edges"` // in the order of their source nodes

	Busy bool `json:"-"` // the run is working at the current node
}

// Kind is the kind of a node.
type Kind string

// The kinds of nodes.
const (
	Start   Kind = "start"
	Role    Kind = "role"
	Suspend Kind = "suspend"
	Fail    Kind = "fail"
	End     Kind = "end"
)

// Node is a node of the graph.
type Node struct {
	Name        string          `json:"name"`
	Kind        Kind            `json:"kind"`
	Description string          `json:"description,omitempty"`
	Player      protocol.Player `json:"player,omitempty"` // for a role that isn't played by an agent
	State       State           `json:"state,omitempty"`  // in a run
	Note        string          `json:"note,omitempty"`   // in a run
	Lanes       []Lane          `json:"lanes,omitempty"`  // in a run: the threads of the role's latest visit
}

// Edge connects two nodes, given as indexes into Nodes.
type Edge struct {
	From  int    `json:"from"`
	To    int    `json:"to"`
	Label string `json:"label,omitempty"` // condition of the edge; "" means always
	Back  bool   `json:"back,omitempty"`  // closes a loop; the other edges form none
	Part  bool   `json:"part,omitempty"`  // not a transition: child threads of role To play role From
	Count int    `json:"count,omitempty"` // how often a run took it
	// Failure marks an edge that is taken if the role can't be played.
	Failure bool `json:"failure,omitempty"`
}

// Of returns the graph of a workflow. It omits edges to missing roles, which a stored workflow never has.
func Of(w protocol.Workflow) Graph {
	g := Graph{Name: oneLine(w.Name), Description: oneLine(w.Description)}
	var names []string
	place := map[string]int{}
	add := func(name string, kind Kind, description string) {
		place[name] = len(names)
		names = append(names, name)
		g.Nodes = append(g.Nodes, Node{Name: oneLine(name), Kind: kind, Description: oneLine(description)})
	}
	add(protocol.StartNode, Start, "")
	for _, name := range flow.Roles(w) {
		add(name, Role, w.Roles[name].Description)
		if player := w.Roles[name].Player(); player != protocol.PlayedByAgent {
			g.Nodes[place[name]].Player = player
		}
	}
	used := targets(w)
	if used[protocol.SuspendNode] {
		add(protocol.SuspendNode, Suspend, "waits for a person")
	}
	if used[protocol.FailNode] {
		add(protocol.FailNode, Fail, "the run has failed")
	}
	if used[protocol.EndNode] {
		add(protocol.EndNode, End, "")
	}
	for from, name := range names {
		for _, way := range flow.Ways(w, name) {
			if to, ok := place[way.Role]; ok {
				e := Edge{From: from, To: to, Label: oneLine(way.Label()), Failure: way.OfFailure(w)}
				g.Edges = append(g.Edges, e)
			}
		}
	}
	for _, name := range names {
		g.addParts(place, name, w.Roles[name])
	}
	g.markLoops()
	return g
}

// addParts adds the roles of the same workflow that play a role in child threads.
func (g *Graph) addParts(place map[string]int, name string, r protocol.Role) {
	part := func(role, label string) {
		if to, ok := place[role]; ok && role != "" {
			g.Edges = append(g.Edges, Edge{From: place[name], To: to, Label: oneLine(label), Part: true})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.All)) {
		label := "part " + key
		if when := r.All[key].When; when != "" {
			label += " if " + plaintext.Short(when, 60)
		}
		part(r.All[key].Role, label)
	}
	if r.Each != nil {
		part(r.Each.Role, "each item")
	}
}

func targets(w protocol.Workflow) map[string]bool {
	used := map[string]bool{}
	for name := range w.Graph {
		for _, way := range flow.Ways(w, name) {
			used[way.Role] = true
		}
	}
	return used
}

// Ways returns the outgoing edges of each node, as indexes into Edges.
func (g Graph) Ways() [][]int {
	out := make([][]int, len(g.Nodes))
	for i, e := range g.Edges {
		out[e.From] = append(out[e.From], i)
	}
	return out
}

// oneLine replaces line breaks and control characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// Columns returns the number of terminal columns that a text occupies.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r == '\uFE0F': // turns the preceding character into a picture
		return 1
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		return 0
	case isWide(r):
		return 2
	}
	return 1
}

// isWide reports whether a character is two columns wide: Chinese, Japanese, Korean, their punctuation and
// full-width forms, and emoji.
func isWide(r rune) bool {
	return r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff01 && r <= 0xff60 ||
		r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3ffff || unicode.Is(wideSigns, r)
}

// wideSigns lists the emoji in blocks whose other symbols are one column wide.
var wideSigns = &unicode.RangeTable{R16: []unicode.Range16{
	{0x231a, 0x231b, 1}, {0x2329, 0x232a, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f3, 3}, {0x25fd, 0x25fe, 1},
	{0x2614, 0x2615, 1},
	{0x2648, 0x2653, 1}, {0x267f, 0x2693, 20}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1},
	{0x26c4, 0x26c5, 1},
	{0x26ce, 0x26d4, 6}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f3, 1}, {0x26f5, 0x26fa, 5}, {0x26fd, 0x2705, 8},
	{0x270a, 0x270b, 1},
	{0x2728, 0x2728, 1}, {0x274c, 0x274e, 2}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2795, 0x2797, 1},
	{0x27b0, 0x27bf, 15},
	{0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 5}, {0xa960, 0xa97c, 1}, {0xffe0, 0xffe6, 1},
}, R32: []unicode.Range32{{0x16fe0, 0x18cff, 1}, {0x1aff0, 0x1b2ff, 1}, {0x1f004, 0x1f0cf, 203}, {0x1f18e, 0x1f19a,
	1}, {0x1f200, 0x1f265, 1}}}

// Cut shortens a text to a number of terminal columns; some characters take two. A width of 0 means no limit.
func Cut(s string, width int) string {
	if width <= 0 || Columns(s) <= width {
		return s
	}
	var b strings.Builder
	n := 1 // for the ellipsis
	for _, r := range s {
		if n += runeColumns(r); n > width {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// markLoops traverses the graph depth-first from $START and marks the edges back to nodes on the current path. It
// keeps its own stack because a workflow can be thousands of roles deep.
func (g *Graph) markLoops() {
	const (
		unseen = iota
		open   // on the current path
		done
	)
	ways := g.Ways()
	state := make([]int, len(g.Nodes))
	next := make([]int, len(g.Nodes)) // next way of each node
	for root := range g.Nodes {
		if state[root] != unseen {
			continue
		}
		path := []int{root}
		state[root] = open
		for len(path) > 0 {
			at := path[len(path)-1]
			if next[at] == len(ways[at]) {
				state[at] = done
				path = path[:len(path)-1]
				continue
			}
			e := &g.Edges[ways[at][next[at]]]
			next[at]++
			switch state[e.To] {
			case open:
				e.Back = true
			case unseen:
				state[e.To] = open
				path = append(path, e.To)
			}
		}
	}
}
