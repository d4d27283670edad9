// Package picture draws a workflow's graph as a standalone SVG: layout.go computes where everything is, and svg.go
// writes the elements. The output is deterministic, and all text is escaped.
package picture

import (
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
)

// ErrTooLarge means that a picture would be too large to be readable.
var ErrTooLarge = errors.New("too large for a picture")

// Limits of an SVG, beyond which it would be unreadable.
const (
	maxNodes  = 200
	maxRoutes = 600
)

// Sizes, in pixels. The width of a column (the room of a character) is an estimate for common sans-serif fonts.
const (
	margin     = 24.0
	lineHeight = 16.0

	nameColumn  = 8.6 // 14 pixels, bold
	noteColumn  = 6.5 // 12 pixels
	labelColumn = 6.7 // 12 pixels, with some room

	maxName   = 30 // columns
	maxNote   = 32
	maxLabel  = 28
	maxLabels = 5     // lines
	minWidth  = 110.0 // of a node
)

//go:embed style.css
var style string

// SVG draws a graph. The picture needs no script or embedded font, and follows the reader's light or dark color
// scheme. For a graph with more than 200 nodes or 600 routes it returns [ErrTooLarge].
func SVG(g diagram.Graph) (string, error) {
	routes := routesOf(g)
	if len(g.Nodes) > maxNodes || len(routes) > maxRoutes {
		return "", fmt.Errorf("%d nodes and %d edges: %w", len(g.Nodes), len(routes), ErrTooLarge)
	}
	l := newLayout(markLoops(g))
	width, height := l.size()
	headHeight := lineHeight * 2.2
	note := wrap(g.Description, max(40, int(width/noteColumn)), 3)
	headHeight += lineHeight * float64(len(note))
	headWidth := float64(diagram.Columns(diagram.Cut(g.Name, 60))) * 11 // 18 pixels, bold
	for _, line := range note {
		headWidth = max(headWidth, float64(diagram.Columns(line))*noteColumn)
	}
	total := max(width, headWidth)

	d := &drawing{}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="uwf" role="img" aria-labelledby="uwf-title uwf-desc" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">`+"\n",
		total+2*margin, height+headHeight+2*margin, total+2*margin, height+headHeight+2*margin)
	d.printf("<title id=\"uwf-title\">%s</title>\n<desc id=\"uwf-desc\">%s</desc>\n", escape("Workflow "+g.Name),
		escape(words(g)))
	pulse := ""
	if g.Busy {
		pulse = pulsing
	}
	d.printf("<style>\n%s%s</style>\n%s", style, pulse, markers)
	d.printf("<rect class=\"canvas\" width=\"100%%\" height=\"100%%\" rx=\"8\"/>\n")
	d.printf("<text class=\"head\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", margin, margin+lineHeight, escape(diagram.Cut(g.Name, 60)))
	for i, line := range note {
		d.printf("<text class=\"note\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", margin, margin+lineHeight*float64(i+2)+4,
			escape(line))
	}
	d.printf("<g transform=\"translate(%.1f %.1f)\">\n", margin+(total-width)/2, margin+headHeight)
	d.routes(l)
	for i := range g.Nodes {
		d.node(l, i)
	}
	d.printf("</g>\n</svg>\n")
	return d.String(), nil
}

// pulsing animates the node at which a run is working.
const pulsing = `@keyframes uwf-pulse { 50% { stroke-opacity: 0.25; } }
@media (prefers-reduced-motion: no-preference) { .uwf .node.here rect { animation: uwf-pulse 2s ease-in-out infinite; } }
`

// markers are the arrowheads. The style sheet colors them, because not every program lets a marker inherit
// the color of its line.
const markers = `<defs>
<marker id="uwf-arrow" class="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z"/></marker>
<marker id="uwf-arrow-back" class="arrow back" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z"/></marker>
</defs>
`

// words describes the graph for screen readers.
func words(g diagram.Graph) string {
	parts := []string{g.Description}
	ways := g.Ways()
	for i, n := range g.Nodes {
		var to []string
		for _, way := range ways[i] {
			e := g.Edges[way]
			text := g.Nodes[e.To].Name
			if label := e.Text(); label != "" {
				text = label + " to " + text
			}
			to = append(to, text)
		}
		if len(to) > 0 {
			parts = append(parts, n.Name+" leads: "+strings.Join(to, ", "))
		}
	}
	return strings.Join(parts, ". ") + "."
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil { // a strings.Builder never returns an error
		return ""
	}
	return b.String()
}

// drawing collects the elements of an SVG.
type drawing struct{ strings.Builder }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// nodeBox returns a box of the size that a node's text needs.
func nodeBox(n diagram.Node) box {
	name, note := nodeText(n)
	w := float64(diagram.Columns(name))*nameColumn + 32
	for _, line := range note {
		w = max(w, float64(diagram.Columns(line))*noteColumn+28)
	}
	return box{w: max(w, minWidth), h: lineHeight*float64(1+len(note)) + 18}
}

func nodeText(n diagram.Node) (name string, note []string) {
	note = wrap(n.About(), maxNote, 2)
	for _, line := range n.LaneTexts() {
		note = append(note, diagram.Cut(line, maxNote))
	}
	return diagram.Cut(n.Name, maxName), note
}

func labelBox(lines []string) box {
	if len(lines) == 0 {
		return box{node: -1}
	}
	w := 0.0
	for _, line := range lines {
		w = max(w, float64(diagram.Columns(line))*labelColumn+10)
	}
	return box{node: -1, label: lines, w: w, h: lineHeight*float64(len(lines)) + 2}
}

// loopWidth returns the space beside a node for its route to itself.
func loopWidth(r route) float64 { return 30 + labelBox(r.labels).w }

func (d *drawing) node(l *layout, i int) {
	n, b := l.g.Nodes[i], l.boxes[i]
	size := nodeBox(n) // b also has the room for a loop
	top := l.nodeTop(i)
	radius := 8.0
	if n.Kind != diagram.Role {
		radius = size.h / 2
	}
	class := string(n.Kind)
	if n.Player != "" {
		class += " " + string(n.Player)
	}
	stroke := ""
	switch n.Player {
	case protocol.PlayedByCommand:
		radius = 0
	case protocol.PlayedByPerson:
		stroke = ` stroke-dasharray="6 3"`
	case protocol.PlayedByWorkflow, protocol.PlayedByAll, protocol.PlayedByEach:
		stroke = ` stroke-width="4"` // a bold frame: other threads
	}
	if n.State != "" {
		class += " " + string(n.State)
	}
	d.printf("<g class=\"node %s\"><title>%s</title>", class, escape(strings.TrimSuffix(n.Name+": "+n.Description, ": ")))
	d.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"%s/>`, b.x-size.w/2, top, size.w, size.h, radius, stroke)
	name, note := nodeText(n)
	y := top + 9 + lineHeight*0.78
	d.printf(`<text class="name" x="%.1f" y="%.1f">%s</text>`, b.x, y, escape(name))
	for _, line := range note {
		y += lineHeight
		d.printf(`<text class="note" x="%.1f" y="%.1f">%s</text>`, b.x, y, escape(line))
	}
	d.printf("</g>\n")
}

// routes draws all lines and then all labels, so that no line crosses a label.
func (d *drawing) routes(l *layout) {
	upper, lower := l.ports()
	for i, r := range l.routes {
		class, marker := "edge", "uwf-arrow"
		if r.part {
			class = "edge part"
		}
		if r.back {
			class, marker = "edge back", "uwf-arrow-back"
		}
		class += l.taken(r)
		path := ""
		if r.from == r.to {
			path = l.loop(r)
		} else {
			path = l.path(r, upper[i], lower[i])
		}
		d.printf("<path class=\"%s\" d=\"%s\" marker-end=\"url(#%s)\"/>\n", class, path, marker)
	}
	for _, r := range l.routes {
		if r.from == r.to {
			b := l.boxes[r.from]
			label := labelBox(r.labels)
			x := b.x + nodeBox(l.g.Nodes[r.from]).w/2 + 26 + label.w/2
			d.label(label, x, l.nodeTop(r.from)+b.h/2, l.labelClass(r))
			continue
		}
		for i, bend := range r.bends {
			d.label(l.boxes[bend], l.boxes[bend].x, l.top[r.layer+i]+l.height[r.layer+i]/2, l.labelClass(r))
		}
	}
}

// loop returns the path from a node to itself, on its right side.
func (l *layout) loop(r route) string {
	b := l.boxes[r.from]
	x, y := b.x+nodeBox(l.g.Nodes[r.from]).w/2, l.nodeTop(r.from)+b.h/2
	return fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x, y-8, x+30, y-18, x+30, y+18, x, y+8)
}

// taken returns the CSS class that shows whether the traced run took the route; "" without a run.
func (l *layout) taken(r route) string {
	switch {
	case !l.g.IsTraced():
		return ""
	case r.count > 0:
		return " taken"
	}
	return " untaken"
}

func (l *layout) labelClass(r route) string {
	class := "label"
	if r.back {
		class += " back"
	}
	return class + l.taken(r)
}

func (d *drawing) label(b box, x, y float64, class string) {
	if len(b.label) == 0 {
		return
	}
	d.printf(`<g class="%s"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4"/>`, class, x-b.w/2, y-b.h/2, b.w, b.h)
	for i, line := range b.label {
		d.printf(`<text x="%.1f" y="%.1f">%s</text>`, x, y-b.h/2+lineHeight*(float64(i)+0.8), escape(line))
	}
	d.printf("</g>\n")
}

// wrap breaks a text into lines of at most width columns, at spaces where possible. The parameter most limits
// the number of lines.
func wrap(s string, width, most int) []string {
	var lines []string
	for s != "" && len(lines) < most {
		if len(lines) == most-1 || diagram.Columns(s) <= width {
			return append(lines, diagram.Cut(s, width))
		}
		at, n, space := 0, 0, 0
		for i, r := range s {
			if r == ' ' {
				space = i
			}
			if n += diagram.Columns(string(r)); n > width {
				at = i
				break
			}
		}
		if space > 0 && s[at] != ' ' {
			at = space
		}
		lines = append(lines, strings.TrimSpace(s[:at]))
		s = strings.TrimSpace(s[at:])
	}
	return lines
}
