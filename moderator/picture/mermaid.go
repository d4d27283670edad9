package picture

import (
	"encoding/json"
	"fmt"
	"strings"
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
		if e.Back {
			arrow = "-.->"
		}
		if e.Label != "" {
			arrow += `|"` + mermaidText(e.Label) + `"|`
		}
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.From, arrow, e.To)
	}
	return b.String()
}

func mermaidNode(n Node) string {
	text := mermaidText(n.Name)
	switch n.Kind {
	case Start, End:
		return `(["` + text + `"])`
	case Suspend:
		return `{{"` + text + `"}}`
	}
	if n.Description != "" {
		text += "<br/><small>" + mermaidText(n.Description) + "</small>"
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
