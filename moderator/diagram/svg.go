// Package diagram draws a workflow's graph as text for a terminal, as Mermaid or DOT for other programs, and
// as a standalone SVG. The output is deterministic.
//
// Names in a workflow can contain any printable character, so every format escapes its text.
package diagram

import (
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// ErrTooLarge means that a picture would be too large to be readable.
var ErrTooLarge = errors.New("too large for a picture")

// Limits of an SVG, beyond which it would be unreadable.
const (
	maxNodes  = 200
	maxRoutes = 600
)

// Text sizes, in pixels. Column widths are estimates for common sans-serif fonts.
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

// SVG draws the graph. The picture needs no other program or embedded font, and follows the reader's light or
// dark color scheme. A graph with more than 200 nodes returns [ErrTooLarge].
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
	d.printf("<title id=\"uwf-title\">%s</title>\n<desc id=\"uwf-desc\">%s</desc>\n", escape("Workflow "+g.Name),
		escape(g.words()))
	pulse := ""
	if g.busy {
		pulse = pulsing
	}
	d.printf("<style>\n%s%s</style>\n%s", style, pulse, markers)
	d.printf("<rect class=\"canvas\" width=\"100%%\" height=\"100%%\" rx=\"8\"/>\n")
	d.printf("<text class=\"head\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", margin, margin+lineHeight, escape(cut(g.Name, 60)))
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

// pulsing is the style of the node at which a run is working.
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
	if err := xml.EscapeText(&b, []byte(s)); err != nil { // a strings.Builder never returns an error
		return ""
	}
	return b.String()
}

// drawing collects the elements of an SVG.
type drawing struct{ strings.Builder }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// nodeBox returns the size of a node for its text.
func nodeBox(n Node) box {
	name, note := nodeText(n)
	w := float64(columns(name))*nameColumn + 32
	for _, line := range note {
		w = max(w, float64(columns(line))*noteColumn+28)
	}
	return box{w: max(w, minWidth), h: lineHeight*float64(1+len(note)) + 18}
}

func nodeText(n Node) (name string, note []string) {
	note = wrap(n.about(), maxNote, 2)
	for _, line := range n.lanes() {
		note = append(note, cut(line, maxNote))
	}
	return cut(n.Name, maxName), note
}

func labelBox(lines []string) box {
	if len(lines) == 0 {
		return box{node: -1}
	}
	w := 0.0
	for _, line := range lines {
		w = max(w, float64(columns(line))*labelColumn+10)
	}
	return box{node: -1, label: lines, w: w, h: lineHeight*float64(len(lines)) + 2}
}

// loopWidth returns the space beside a node for its route to itself.
func loopWidth(r route) float64 { return 30 + labelBox(r.labels).w }

func (d *drawing) node(l *layout, i int) {
	n, b := l.g.Nodes[i], l.boxes[i]
	size := nodeBox(n)
	top := l.nodeTop(i)
	radius := 8.0
	if n.Kind != Role {
		radius = size.h / 2
	}
	class := string(n.Kind)
	if n.Player != "" {
		class += " " + string(n.Player)
	}
	dashes := ""
	switch n.Player {
	case protocol.PlayedByCommand:
		radius = 0
	case protocol.PlayedByPerson:
		dashes = ` stroke-dasharray="6 3"`
	case protocol.PlayedByWorkflow, protocol.PlayedByAll, protocol.PlayedByEach:
		dashes = ` stroke-width="4"` // several stacked lines
	}
	if n.State != "" {
		class += " " + string(n.State)
	}
	d.printf("<g class=\"node %s\"><title>%s</title>", class, escape(strings.TrimSuffix(n.Name+": "+n.Description, ": ")))
	d.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"%s/>`, b.x-size.w/2, top, size.w, size.h, radius, dashes)
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

// taken returns the CSS class that shows whether a run took the route.
func (l *layout) taken(r route) string {
	switch {
	case !l.g.traced():
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

// Graph is a workflow's graph, ready to draw.
type Graph struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Nodes       []Node `json:"nodes"` // $START, the roles in order of reachability, and $SUSPEND, $FAIL and $END if used
	Edges       []Edge `json:"edges"` // in the order of their source nodes

	busy bool // the run is working at the current node
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
	Back  bool   `json:"back,omitempty"`  // leads back to an earlier node: a loop
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

// ways returns the outgoing edges of each node.
func (g Graph) ways() [][]int {
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
func Columns(s string) int { return columns(s) }

func columns(s string) int {
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
func Cut(s string, width int) string { return cut(s, width) }

func cut(s string, width int) string {
	if width <= 0 || columns(s) <= width {
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

// wrap breaks a text into lines of at most width columns, at spaces where possible. The parameter most limits
// the number of lines.
func wrap(s string, width, most int) []string {
	var lines []string
	for s != "" && len(lines) < most {
		if len(lines) == most-1 || columns(s) <= width {
			return append(lines, cut(s, width))
		}
		at, n, space := 0, 0, 0
		for i, r := range s {
			if r == ' ' {
				space = i
			}
			if n += runeColumns(r); n > width {
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
