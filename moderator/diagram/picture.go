// Package diagram draws a workflow's graph: as text for a terminal, as Mermaid
// and DOT for other programs, and as an SVG that needs none. It is pure: the
// same workflow gives the same bytes.
//
// Names in a workflow may hold anything that can be printed, so every format
// escapes all that it writes.
package diagram

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
)

// Graph is what there is to draw.
type Graph struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Nodes       []Node `json:"nodes"` // $START, the roles as they are reached, $SUSPEND and $END if used
	Edges       []Edge `json:"edges"` // in the order of their nodes

	busy bool // the run is at work at the node that is marked
}

// Kind is what a node stands for.
type Kind string

// The kinds.
const (
	Start   Kind = "start"
	Role    Kind = "role"
	Suspend Kind = "suspend"
	End     Kind = "end"
)

// Node is a node of the graph.
type Node struct {
	Name        string          `json:"name"`
	Kind        Kind            `json:"kind"`
	Description string          `json:"description,omitempty"`
	Player      protocol.Player `json:"player,omitempty"` // of a role that no agent plays
	State       State           `json:"state,omitempty"`  // of a run
	Note        string          `json:"note,omitempty"`   // of a run
	Lanes       []Lane          `json:"lanes,omitempty"`  // of a run: the threads that have played, or play, the role last
}

// Edge leads from a node to a node, by their places in Nodes.
type Edge struct {
	From  int    `json:"from"`
	To    int    `json:"to"`
	Label string `json:"label,omitempty"` // when it is taken; "" means always
	Back  bool   `json:"back,omitempty"`  // leads to a node that led here: a loop
	Part  bool   `json:"part,omitempty"`  // not a way on: threads of role To play role From
	Count int    `json:"count,omitempty"` // how often a run has taken it
}

// Of reads the graph of a workflow. Edges to roles that do not exist are left out; a stored
// workflow has none.
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
	if used[protocol.EndNode] {
		add(protocol.EndNode, End, "")
	}
	for from, name := range names {
		for _, way := range flow.Ways(w, name) {
			if to, ok := place[way.Role]; ok {
				g.Edges = append(g.Edges, Edge{From: from, To: to, Label: oneLine(way.Label())})
			}
		}
	}
	for _, name := range names {
		g.addParts(place, name, w.Roles[name])
	}
	g.markLoops()
	return g
}

// addParts adds the roles of the same workflow that play a role in threads of their own.
func (g *Graph) addParts(place map[string]int, name string, r protocol.Role) {
	part := func(role, label string) {
		if to, ok := place[role]; ok && role != "" {
			g.Edges = append(g.Edges, Edge{From: place[name], To: to, Label: oneLine(label), Part: true})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.All)) {
		part(r.All[key].Role, "part "+key)
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

// ways lists, for each node, the edges that leave it.
func (g Graph) ways() [][]int {
	out := make([][]int, len(g.Nodes))
	for i, e := range g.Edges {
		out[e.From] = append(out[e.From], i)
	}
	return out
}

// oneLine makes text fit for one line: no line ends, no control characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
