package diagram

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

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
		if lanes := n.lanes(); len(lanes) > 0 {
			label += "\n" + strings.Join(lanes, "\n")
		}
		fmt.Fprintf(&b, "  n%d [label=%s%s%s];\n", i, dotText(label), dotShape(n), dotState(n))
	}
	for _, e := range g.Edges {
		var attributes []string
		if label := e.label(); label != "" {
			attributes = append(attributes, "label="+dotText(" "+label+" "))
		}
		switch {
		case e.Back:
			attributes = append(attributes, "style=dashed")
		case e.Part:
			attributes = append(attributes, "style=dotted")
		}
		switch {
		case e.Count > 0:
			attributes = append(attributes, "penwidth=2.5")
		case g.traced():
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
	case End:
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

// dotState is how a node of a run looks.
func dotState(n Node) string {
	switch n.State {
	case Here:
		return ", penwidth=3"
	case Unseen:
		return ", color=gray70, fontcolor=gray50"
	}
	return ""
}

// dotText quotes a text. Graphviz reads escapes and HTML entities in a quoted
// label, so both are kept from meaning anything.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "&", "&amp;").Replace(s) + `"`
}
