package diagram

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// drawing collects the elements of an SVG.
type drawing struct{ strings.Builder }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// nodeBox is the size of a node by what is written in it.
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

// loopWidth is the room beside a node that its way to itself takes.
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
		dashes = ` stroke-width="4"` // several lines on each other
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

// routes draws all lines, then all labels, so that no line crosses a label.
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

// loop draws the way from a node to itself, at its right side.
func (l *layout) loop(r route) string {
	b := l.boxes[r.from]
	x, y := b.x+nodeBox(l.g.Nodes[r.from]).w/2, l.nodeTop(r.from)+b.h/2
	return fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x, y-8, x+30, y-18, x+30, y+18, x, y+8)
}

// taken is the class of a way that a run has taken, or has not.
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
