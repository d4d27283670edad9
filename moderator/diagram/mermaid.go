package diagram

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Mermaid writes a flowchart that GitHub, GitLab and many editors draw.
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
		case e.Back, e.Part:
			arrow = "-.->"
		}
		if label := e.label(); label != "" {
			arrow += `|"` + mermaidText(label) + `"|`
		}
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.From, arrow, e.To)
	}
	g.mermaidStates(&b)
	return b.String()
}

// mermaidStates marks where a run stands and where it has not been.
func (g Graph) mermaidStates(b *strings.Builder) {
	if !g.traced() {
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
	case Start, End:
		return `(["` + text + `"])`
	case Suspend:
		return `{{"` + text + `"}}`
	}
	if about := n.about(); about != "" {
		text += "<br/><small>" + mermaidText(about) + "</small>"
	}
	for _, line := range n.lanes() {
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

// mermaidText writes all that Mermaid, its Markdown or HTML could take for
// markup as character codes, which it draws as the characters.
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
