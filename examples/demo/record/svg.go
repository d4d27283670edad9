package main

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// Layout of the picture, in its own units.
const (
	charWidth  = 7.9
	lineHeight = 18
	drop       = 5 // from the bottom of a line to the baseline
	margin     = 16
	bar        = 28 // above the lines
	// hold is the time that an animation shows its end.
	hold = 5 * time.Second
)

// animate draws a scene as a looping animation. Readers who prefer reduced motion see its end.
func animate(s scene, rows int) string {
	var b strings.Builder
	columns := s.columns()
	total := s.length + hold
	head(&b, columns, rows)
	b.WriteString("<style>\n")
	fmt.Fprintf(&b, "text{opacity:0}.end{opacity:1}\n@media (prefers-reduced-motion:no-preference){text,#lines{animation:%.2fs step-end infinite}}\n", total.Seconds())
	var texts strings.Builder
	n := 0
	for i, l := range s.lines {
		for j, v := range l {
			class := ""
			until := total
			if j+1 < len(l) {
				until = l[j+1].from
			} else {
				class = ` class="end"`
			}
			if strings.TrimSpace(v.text) == "" || until == v.from {
				continue
			}
			n++
			fmt.Fprintf(&b, "@keyframes k%d{0%%{opacity:%d}%s{opacity:1}%s}\n", n, at0(v.from), percent(v.from, total), gone(until, total))
			fmt.Fprintf(&texts, "<text%s style=\"animation-name:k%d\" y=\"%d\"%s>%s</text>\n", class, n, (i+1)*lineHeight-drop, tint(v.text), escape(v.text))
		}
	}
	b.WriteString(scrolling(s, rows, total))
	b.WriteString("</style>\n")
	window(&b, columns, rows)
	b.WriteString("<g id=\"lines\">\n" + texts.String() + "</g>\n</svg>\n</svg>\n")
	return b.String()
}

// scrolling moves the lines up when they don't fit.
func scrolling(s scene, rows int, total time.Duration) string {
	var b strings.Builder
	over := 0
	b.WriteString("@keyframes scroll{0%{transform:translateY(0)}")
	for i, l := range s.lines {
		if i < rows || len(l) == 0 {
			continue
		}
		over = i + 1 - rows
		fmt.Fprintf(&b, "%s{transform:translateY(%dpx)}", percent(l[0].from, total), -over*lineHeight)
	}
	fmt.Fprintf(&b, "}\n#lines{animation-name:scroll;transform:translateY(%dpx)}\n", -over*lineHeight)
	return b.String()
}

func at0(from time.Duration) int {
	if from == 0 {
		return 1
	}
	return 0
}

func percent(at, total time.Duration) string {
	return fmt.Sprintf("%.3f%%", 100*at.Seconds()/total.Seconds())
}

func gone(until, total time.Duration) string {
	if until == total {
		return ""
	}
	return percent(until, total) + "{opacity:0}"
}

// still draws one moment of a scene.
func still(s scene, at time.Duration, rows int) string {
	columns := s.columns()
	var shown []string
	for _, l := range s.lines {
		text, there := "", false
		for _, v := range l {
			if v.from <= at {
				text, there = v.text, true
			}
		}
		if !there && len(l) > 0 {
			break // it appeared later
		}
		shown = append(shown, text)
	}
	if len(shown) > rows {
		shown = shown[len(shown)-rows:]
	}
	var b strings.Builder
	head(&b, columns, len(shown))
	window(&b, columns, len(shown))
	for i, text := range shown {
		if strings.TrimSpace(text) != "" {
			fmt.Fprintf(&b, "<text y=\"%d\"%s>%s</text>\n", (i+1)*lineHeight-drop, tint(text), escape(text))
		}
	}
	b.WriteString("</svg>\n</svg>\n")
	return b.String()
}

func head(b *strings.Builder, columns, rows int) {
	width, height := size(columns, rows)
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "+
		"font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"13\">\n",
		width, height+bar, width, height+bar)
}

// window draws a terminal in its own colors, for light and dark pages.
func window(b *strings.Builder, columns, rows int) {
	width, height := size(columns, rows)
	fmt.Fprintf(b, "<rect x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#16181d\" stroke=\"#4b5160\"/>\n", width-1, height+bar-1)
	for i, colour := range []string{"#e0645c", "#dcae4a", "#62b262"} {
		fmt.Fprintf(b, "<circle cx=\"%d\" cy=\"16\" r=\"5\" fill=\"%s\"/>\n", margin+4+i*18, colour)
	}
	fmt.Fprintf(b, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#d8dbe2\">\n",
		margin, bar, width-2*margin, rows*lineHeight+6)
}

func size(columns, rows int) (width, height int) {
	return int(float64(columns)*charWidth) + 2*margin, rows*lineHeight + margin
}

// tint returns the color of a line, because the live view has none.
func tint(text string) string {
	switch {
	case strings.HasPrefix(text, "$ "):
		return ` fill="#ffffff" font-weight="bold"`
	case strings.HasPrefix(text, "hint: "), strings.HasPrefix(text, "== "):
		return ` fill="#8fb7ff"`
	case strings.HasPrefix(text, "  "):
		return ` fill="#98a0b0"`
	}
	return ""
}

// escape preserves spaces, which SVG would collapse.
func escape(text string) string {
	const hard = "\u00a0"
	var b strings.Builder
	text = strings.ReplaceAll(strings.TrimRight(text, " "), "  ", hard+hard)
	_ = xml.EscapeText(&b, []byte(text)) // a builder never fails
	return b.String()
}
