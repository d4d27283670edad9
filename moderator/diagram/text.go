package diagram

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Text draws the graph as a tree from $START, in lines of at most width columns (0: no limit) unless a name
// is longer. A node that was drawn above is marked ↑ and not drawn again. A branch that doesn't fit the page
// is marked ↓ and drawn below, at the margin.
func (g Graph) Text(width int) string {
	t := &tree{g: g, ways: g.Ways(), width: width, drawn: make([]bool, len(g.Nodes)), queued: make([]bool, len(g.Nodes))}
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

// undrawn returns the first role that can't be reached from the drawn ones, or -1.
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
	t.line(n.shownBy(Edge{Count: 1}), n.About()) // not reachable by a drawn edge
	t.drawn[node] = true
	t.branches(node, "")
}

// branches draws the outgoing edges of a node, with the given margin before each line.
func (t *tree) branches(node int, margin string) {
	bar := "│  "
	if len(t.ways[node]) == 0 {
		bar = "   "
	}
	for _, line := range t.g.Nodes[node].LaneTexts() {
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
		t.line(t.way(head, e.Text(), n.shownBy(e)), "")
	case t.drawn[e.To]:
		t.line(t.way(head, e.Text(), n.Name+" ↑"), "")
	case t.queued[e.To] || t.tooDeep(margin):
		t.line(t.way(head, e.Text(), n.Name+" ↓"), "")
		if !t.queued[e.To] {
			t.queued[e.To] = true
			t.queue = append(t.queue, e.To)
		}
	default:
		t.drawn[e.To] = true
		t.line(t.way(head, e.Text(), n.shownBy(e)), n.About())
		t.branches(e.To, margin)
	}
}

// way formats a label and its target. If both don't fit, the label is shortened, because it can be a whole
// expression.
func (t *tree) way(head, label, target string) string {
	const least = 8
	if label == "" {
		return head + target
	}
	target = " → " + target
	if t.width > 0 {
		label = Cut(label, max(least, t.width-Columns(head)-Columns(target)))
	}
	return head + label + target
}

// tooDeep reports whether a branch at this margin should be drawn below. It also bounds the recursion if
// width doesn't.
func (t *tree) tooDeep(margin string) bool {
	const most = 60
	depth := Columns(margin)
	return depth > most || t.width > 0 && depth > t.width/3
}

// line writes a node and its description. Only the description is shortened; a shortened name couldn't be
// typed.
func (t *tree) line(head, note string) {
	if head != "" && note != "" {
		head += "  "
	}
	if room := t.width - Columns(head); note != "" && (t.width == 0 || room > 0) {
		head += Cut(note, room)
	}
	fmt.Fprintln(&t.out, strings.TrimRight(head, " "))
}

// Mermaid returns a flowchart that GitHub, GitLab and many editors render.
func (g Graph) Mermaid() string {
	var b strings.Builder
	if title, err := json.Marshal(g.Name); err == nil { // a string always encodes
		fmt.Fprintf(&b, "---\ntitle: %s\n---\n", title)
	}
	b.WriteString("flowchart TD\n")
	for i, n := range g.Nodes {
		fmt.Fprintf(&b, "  n%d%s\n", i, mermaidNode(n))
	}
	for _, e := range g.Edges {
		arrow := "-->"
		switch {
		case e.Count > 0:
			arrow = "==>"
		case e.Back, e.Part, e.Failure:
			arrow = "-.->"
		}
		if label := e.Text(); label != "" {
			arrow += `|"` + mermaidText(label) + `"|`
		}
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.From, arrow, e.To)
	}
	g.mermaidStates(&b)
	return b.String()
}

// mermaidStates highlights the current node of a run and the nodes it hasn't visited.
func (g Graph) mermaidStates(b *strings.Builder) {
	if !g.IsTraced() {
		return
	}
	b.WriteString("  classDef unseen opacity:0.45\n  classDef here stroke-width:4px\n")
	for i, n := range g.Nodes {
		if n.State != Seen {
			fmt.Fprintf(b, "  class n%d %s\n", i, n.State)
		}
	}
}

func mermaidNode(n Node) string {
	text := mermaidText(n.Name)
	switch n.Kind {
	case Start, End, Fail:
		return `(["` + text + `"])`
	case Suspend:
		return `{{"` + text + `"}}`
	}
	if about := n.About(); about != "" {
		text += "<br/><small>" + mermaidText(about) + "</small>"
	}
	for _, line := range n.LaneTexts() {
		text += "<br/><small>" + mermaidText(line) + "</small>"
	}
	switch n.Player {
	case protocol.PlayedByCommand:
		return `[["` + text + `"]]`
	case protocol.PlayedByPerson:
		return `[/"` + text + `"/]`
	case protocol.PlayedByWorkflow, protocol.PlayedByAll, protocol.PlayedByEach:
		return `[\"` + text + `"\]`
	}
	return `["` + text + `"]`
}

// mermaidText encodes characters that Mermaid, its Markdown or HTML could interpret as markup. Mermaid
// renders the codes as the characters.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\"#&<>`*_~\\[]{}()|;%$'", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// DOT writes the graph for Graphviz.
func (g Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotText(g.Name))
	b.WriteString("  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n")
	b.WriteString("  edge [fontname=\"sans-serif\", fontsize=11];\n")
	for i, n := range g.Nodes {
		label := n.Name
		if n.Note != "" {
			label += "\n" + n.Note
		}
		if lanes := n.LaneTexts(); len(lanes) > 0 {
			label += "\n" + strings.Join(lanes, "\n")
		}
		fmt.Fprintf(&b, "  n%d [label=%s%s%s];\n", i, dotText(label), dotShape(n), dotState(n))
	}
	for _, e := range g.Edges {
		var attributes []string
		if label := e.Text(); label != "" {
			attributes = append(attributes, "label="+dotText(" "+label+" "))
		}
		switch {
		case e.Back:
			attributes = append(attributes, "style=dashed")
		case e.Part, e.Failure:
			attributes = append(attributes, "style=dotted")
		}
		switch {
		case e.Count > 0:
			attributes = append(attributes, "penwidth=2.5")
		case g.IsTraced():
			attributes = append(attributes, "color=gray70", "fontcolor=gray50")
		}
		fmt.Fprintf(&b, "  n%d -> n%d", e.From, e.To)
		if len(attributes) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(attributes, ", "))
		}
		b.WriteString(";\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func dotShape(n Node) string {
	shape := ""
	switch n.Kind {
	case Start:
		shape = ", shape=oval"
	case End, Fail:
		shape = ", shape=oval, peripheries=2"
	case Suspend:
		shape = ", shape=hexagon, style=solid"
	}
	switch n.Player {
	case protocol.PlayedByCommand:
		shape = ", shape=component, style=solid"
	case protocol.PlayedByPerson:
		shape = ", shape=house, style=solid"
	case protocol.PlayedByWorkflow, protocol.PlayedByAll, protocol.PlayedByEach:
		shape = ", shape=box3d, style=solid"
	}
	if n.Description != "" {
		shape += ", tooltip=" + dotText(n.Description)
	}
	return shape
}

// dotState returns the attributes of a node in a run.
func dotState(n Node) string {
	switch n.State {
	case Here:
		return ", penwidth=3"
	case Unseen:
		return ", color=gray70, fontcolor=gray50"
	}
	return ""
}

// dotText quotes a text. Graphviz interprets escapes and HTML entities in a quoted label, so both are
// escaped.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "&", "&amp;").Replace(s) + `"`
}
