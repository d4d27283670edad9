package tools

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
)

// matches finds the matching lines of a file, and keeps those to show.
func (g *grep) matches(name string, text []byte, at *seeker) fileMatches {
	f := fileMatches{name: name}
	v := viewer{text: text, around: g.around, number: 1}
	for start, end, ok := at.next(text, 0); ok; start, end, ok = at.next(text, end+1) {
		if g.total.Add(1); f.count < g.limit && !g.enough.Load() && !(g.filesOnly && f.count > 0) {
			f.count++
			if !g.filesOnly {
				v.show(start, end)
			}
		}
		if g.filesOnly || g.total.Load() >= maxCounted && g.enough.Load() {
			break
		}
	}
	v.finish()
	f.lines = v.lines
	return f
}

// lineAt returns where the line that holds a place begins and ends.
func lineAt(text []byte, at int) (start, end int) {
	start = bytes.LastIndexByte(text[:at], '\n') + 1
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return start, at + i
	}
	return start, len(text)
}

// shownLine is a line as it is shown.
type shownLine struct {
	number int
	mark   byte // ':' matches, '-' is a neighbour, 0 for a gap
	text   string
}

// viewer collects matching lines with their neighbours.
type viewer struct {
	text   []byte
	around int
	lines  []shownLine

	at, number int // the first byte that is not looked at yet, and its line
	trail      int // lines to show behind the last match
}

// show adds a matching line, and what belongs around it.
func (v *viewer) show(start, end int) {
	before := v.neighbours(start)
	if v.around > 0 && len(v.lines) > 0 && (len(before) == 0 || before[0].start > v.at) && v.at < start {
		v.lines = append(v.lines, shownLine{})
	}
	for _, l := range before {
		v.skip(l.start)
		v.add('-', l.start, l.end)
	}
	v.skip(start)
	v.add(':', start, end)
	v.trail = v.around
}

type line struct{ start, end int }

// neighbours are the lines to show before the one at start: those of the match
// before, and as many as wanted.
func (v *viewer) neighbours(start int) []line {
	v.follow(start)
	var before []line
	for end := start - 1; len(before) < v.around && end >= v.at; {
		from := bytes.LastIndexByte(v.text[:end], '\n') + 1
		before = append([]line{{from, end}}, before...)
		end = from - 1
	}
	return before
}

// follow adds lines behind the last match, up to a place.
func (v *viewer) follow(limit int) {
	for ; v.trail > 0 && v.at < limit; v.trail-- {
		_, end := lineAt(v.text, v.at)
		v.add('-', v.at, end)
	}
}

func (v *viewer) finish() { v.follow(len(v.text)) }

// skip counts the lines up to a place.
func (v *viewer) skip(to int) {
	v.number += bytes.Count(v.text[v.at:to], []byte{'\n'})
	v.at = to
}

// add adds the line from start, which is v.at, to end.
func (v *viewer) add(mark byte, start, end int) {
	text := asText(string(v.text[start:min(end, start+maxShownLine+4)]))
	if end-start > maxShownLine {
		text, _ = plaintext.WholeRunes(text[:min(len(text), maxShownLine)], "")
		text += "…"
	}
	v.lines = append(v.lines, shownLine{v.number, mark, text})
	v.at = min(end+1, len(v.text))
	v.number++
}

// text shows the matches up to the limit, within the size of a result.
func (g *grep) text() string {
	var b strings.Builder
	full := false
	for _, f := range g.found {
		g.files++
		full = full || g.shown >= g.limit || b.Len() > maxReadBytes
		if full {
			continue
		}
		if g.filesOnly {
			b.WriteString(shown(f.name) + "\n")
			g.shown++
			continue
		}
		full = g.write(&b, f)
	}
	return b.String()
}

// write shows the matches of a file and tells whether the room is used up.
func (g *grep) write(b *strings.Builder, f fileMatches) (full bool) {
	name := shown(f.name)
	if g.around > 0 && b.Len() > 0 {
		b.WriteString("--\n")
	}
	for _, l := range f.lines {
		if l.mark == ':' && g.shown >= g.limit || b.Len() > maxReadBytes {
			return true
		}
		switch l.mark {
		case 0:
			b.WriteString("--\n")
			continue
		case ':':
			g.shown++
		}
		fmt.Fprintf(b, "%s%c%d%c %s\n", name, l.mark, l.number, l.mark, l.text)
	}
	return false
}
