package diagram

import (
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
)

// ErrTooLarge means that a picture would be too large to be looked at.
var ErrTooLarge = errors.New("too large for a picture")

// What an SVG can show.
const (
	maxNodes  = 200
	maxRoutes = 600
)

// Sizes of text, in pixels; columns are estimates for common sans-serif fonts.
const (
	margin     = 24.0
	lineHeight = 16.0

	nameColumn  = 8.6 // 14 pixels, bold
	noteColumn  = 6.5 // 12 pixels
	labelColumn = 6.7

	maxName   = 30 // columns
	maxNote   = 32
	maxLabel  = 28
	maxLabels = 5 // lines
	minWidth  = 110.0
)

//go:embed style.css
var style string

// SVG draws the graph. It needs no other program and no font of its own, and
// follows the reader's light or dark colour scheme. A graph of more than 200
// nodes is [ErrTooLarge].
func (g Graph) SVG() (string, error) {
	routes := routesOf(g)
	if len(g.Nodes) > maxNodes || len(routes) > maxRoutes {
		return "", fmt.Errorf("%d nodes and %d edges: %w", len(g.Nodes), len(routes), ErrTooLarge)
	}
	l := newLayout(g)
	width, height := l.size()
	headHeight := lineHeight * 2.2
	note := wrap(g.Description, max(40, int(width/noteColumn)), 3)
	headHeight += lineHeight * float64(len(note))
	headWidth := float64(columns(cut(g.Name, 60))) * 11
	for _, line := range note {
		headWidth = max(headWidth, float64(columns(line))*noteColumn)
	}
	total := max(width, headWidth)

	d := &drawing{}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="uwf" role="img" aria-labelledby="uwf-title uwf-desc" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">`+"\n",
		total+2*margin, height+headHeight+2*margin, total+2*margin, height+headHeight+2*margin)
	d.printf("<title id=\"uwf-title\">%s</title>\n<desc id=\"uwf-desc\">%s</desc>\n", escape("Workflow "+g.Name), escape(g.words()))
	pulse := ""
	if g.busy {
		pulse = pulsing
	}
	d.printf("<style>\n%s%s</style>\n%s", style, pulse, markers)
	d.printf("<rect class=\"canvas\" width=\"100%%\" height=\"100%%\" rx=\"8\"/>\n")
	d.printf("<text class=\"head\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", margin, margin+lineHeight, escape(cut(g.Name, 60)))
	for i, line := range note {
		d.printf("<text class=\"note\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", margin, margin+lineHeight*float64(i+2)+4, escape(line))
	}
	d.printf("<g transform=\"translate(%.1f %.1f)\">\n", margin+(total-width)/2, margin+headHeight)
	d.routes(l)
	for i := range g.Nodes {
		d.node(l, i)
	}
	d.printf("</g>\n</svg>\n")
	return d.String(), nil
}

// pulsing is the style of the node where a run is at work.
const pulsing = `@keyframes uwf-pulse { 50% { stroke-opacity: 0.25; } }
@media (prefers-reduced-motion: no-preference) { .uwf .node.here rect { animation: uwf-pulse 2s ease-in-out infinite; } }
`

// markers are the heads of the arrows. They are coloured by the style, because
// not every program lets a marker take the colour of its line.
const markers = `<defs>
<marker id="uwf-arrow" class="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z"/></marker>
<marker id="uwf-arrow-back" class="arrow back" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z"/></marker>
</defs>
`

// words says the graph in words, for those who cannot see it.
func (g Graph) words() string {
	parts := []string{g.Description}
	ways := g.ways()
	for i, n := range g.Nodes {
		var to []string
		for _, way := range ways[i] {
			e := g.Edges[way]
			text := g.Nodes[e.To].Name
			if label := e.label(); label != "" {
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
	if err := xml.EscapeText(&b, []byte(s)); err != nil { // a strings.Builder takes everything
		return ""
	}
	return b.String()
}
