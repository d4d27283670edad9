package diagram

import (
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Trace is the path of a run through a graph.
type Trace struct {
	Moves []Move
	Here  string            // current node; "" if unknown
	Notes map[string]string // by role: replaces the description of a role that has run
	Lanes map[string][]Lane // by role
	Busy  bool              // a step is running at Here
}

// Lane is one child thread of a role, or all of a role's child threads in the same state.
type Lane struct {
	Name   string          `json:"name,omitempty"` // name of a single thread
	Count  int             `json:"count"`
	Status protocol.Status `json:"status"`
	Note   string          `json:"note,omitempty"`
}

// text returns the lane as one line.
func (l Lane) text() string {
	mark := "…"
	switch l.Status {
	case protocol.StatusCompleted:
		mark = "✓"
	case protocol.StatusError, protocol.StatusCorrupt, protocol.StatusFailed, protocol.StatusCancelled:
		mark = "✗"
	case protocol.StatusSuspended, protocol.StatusRateLimited:
		mark = "?"
	case protocol.StatusIdle:
		mark = "·"
	}
	text := mark + " " + strconv.Itoa(l.Count) + " " + string(l.Status)
	if l.Name != "" {
		text = mark + " " + l.Name + " · " + string(l.Status)
	}
	if l.Note != "" {
		text += " · " + l.Note
	}
	return text
}

// LaneTexts returns a line for each lane of a node.
func (n Node) LaneTexts() []string {
	lines := make([]string, len(n.Lanes))
	for i, l := range n.Lanes {
		lines[i] = l.text()
	}
	return lines
}

// Move is a step along an edge. Status is the status that selected it, if known; it distinguishes edges to
// the same node.
type Move struct{ From, To, Status string }

// State is the state of a node in a run.
type State string

// The states. Without a trace a node has no state.
const (
	Seen   State = "seen"
	Here   State = "here" // next, running, or the end reached
	Unseen State = "unseen"
)

// Traced returns the graph with the path of a run: how often it took each edge, and the state of each node.
// It ignores moves that aren't in the graph.
func (g Graph) Traced(t Trace) Graph {
	g.Nodes, g.Edges, g.Busy = slices.Clone(g.Nodes), slices.Clone(g.Edges), t.Busy
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.State = Unseen
		if n.Kind == Start {
			n.State = Seen
		}
	}
	for _, m := range t.Moves {
		if i := g.edge(m); i >= 0 {
			g.Edges[i].Count++
			g.Nodes[g.Edges[i].To].State = Seen
		}
	}
	for name, note := range t.Notes {
		if i := g.node(name); i >= 0 {
			g.Nodes[i].State = Seen
			g.Nodes[i].Note = oneLine(note)
		}
	}
	for name, lanes := range t.Lanes {
		if i := g.node(name); i >= 0 {
			for _, l := range lanes {
				l.Name, l.Note = oneLine(l.Name), oneLine(l.Note)
				g.Nodes[i].Lanes = append(g.Nodes[i].Lanes, l)
			}
		}
	}
	if i := g.node(t.Here); i >= 0 {
		g.Nodes[i].State = Here
	}
	for _, e := range g.Edges {
		if to := &g.Nodes[e.To]; e.Part && g.Nodes[e.From].State != Unseen && to.State == Unseen {
			to.State = Seen
		}
	}
	return g
}

func (g Graph) node(name string) int {
	name = oneLine(name)
	return slices.IndexFunc(g.Nodes, func(n Node) bool { return n.Name == name })
}

// edge returns the index of a move's edge, or -1.
func (g Graph) edge(m Move) int {
	from, to, found := g.node(m.From), g.node(m.To), -1
	for i, e := range g.Edges {
		if e.From != from || e.To != to {
			continue
		}
		if e.Label == oneLine(m.Status) {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}

// Text returns the condition of an edge, and how often it was taken.
func (e Edge) Text() string {
	if e.Count == 0 {
		return e.Label
	}
	times := "×" + strconv.Itoa(e.Count)
	if e.Label == "" {
		return times
	}
	return e.Label + " " + times
}

// IsTraced reports whether the graph shows a run.
func (g Graph) IsTraced() bool { return len(g.Nodes) > 0 && g.Nodes[0].State != "" }

// About returns the description of a node.
func (n Node) About() string {
	if n.Note != "" {
		return n.Note
	}
	if n.Player != "" {
		return strings.TrimSuffix(string(n.Player)+": "+n.Description, ": ")
	}
	return n.Description
}

// shownBy returns the text of the node at the end of an edge, marked if the run arrived by that edge.
func (n Node) shownBy(e Edge) string {
	if n.State == Here && e.Count > 0 {
		return n.Name + " ◀"
	}
	return n.Name
}
