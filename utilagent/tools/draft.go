package tools

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
)

// draft is a text that is being edited. Nothing is written before all edits
// have succeeded.
type draft struct {
	name    string
	text    string
	changed []span // in text, sorted, apart from each other
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// apply makes one edit.
func (d *draft) apply(e edit) error {
	if e.Old == "" {
		return errors.New("old_string is empty. Give the text to replace, or use write_file for a new file")
	}
	if e.Old == e.New {
		return errors.New("old_string and new_string are the same: there is nothing to change")
	}
	old, replacement := d.fit(e)
	switch n := strings.Count(d.text, old); {
	case n == 0:
		return notFound(d.name, d.text, e.Old, e.New)
	case n > 1 && !e.All:
		return notUnique(d.name, d.text, old)
	}
	var b strings.Builder
	var made []span
	at := 0
	for {
		i := strings.Index(d.text[at:], old)
		if i < 0 {
			break
		}
		b.WriteString(d.text[at : at+i])
		made = append(made, span{b.Len(), b.Len() + len(replacement)})
		b.WriteString(replacement)
		at += i + len(old)
	}
	b.WriteString(d.text[at:])
	d.move(made, len(old), len(replacement))
	d.text = b.String()
	return nil
}

// fit gives an edit the line ends of the text. A model sees no CR, so it writes
// none, or it writes one everywhere.
func (d *draft) fit(e edit) (old, replacement string) {
	switch {
	case allCRLF(d.text):
		return toCRLF(e.Old), toCRLF(e.New)
	case strings.Contains(d.text, e.Old):
		return e.Old, e.New
	case strings.Contains(d.text, toCRLF(e.Old)):
		return toCRLF(e.Old), toCRLF(e.New)
	case !strings.Contains(d.text, "\r"):
		return toLF(e.Old), toLF(e.New)
	}
	return e.Old, e.New
}

// move shifts the spans of earlier edits to where their text is after new ones, and adds the
// new ones.
func (d *draft) move(made []span, before, after int) {
	shift := func(at int) int {
		// Places in the old text: every replacement so far has moved what follows.
		moved := at
		for i, m := range made {
			start := m.from - i*(after-before)
			switch {
			case at >= start+before:
				moved = at + (i+1)*(after-before)
			case at > start:
				return m.from + min(at-start, after)
			}
		}
		return moved
	}
	for i, s := range d.changed {
		d.changed[i] = span{shift(s.from), shift(s.to)}
	}
	d.changed = append(d.changed, made...)
	slices.SortFunc(d.changed, func(a, b span) int { return a.from - b.from })
}

// maxPlaces bounds how many changed places are shown.
const maxPlaces = 6

// report shows the file around what has changed.
func (d *draft) report() string {
	type lines struct{ first, last int }
	var places []lines
	line, at := 1, 0
	for _, s := range d.changed {
		line += strings.Count(d.text[at:s.from], "\n")
		at = s.from
		last := line + strings.Count(strings.TrimSuffix(d.text[s.from:s.to], "\n"), "\n")
		if n := len(places); n > 0 && line-3 <= places[n-1].last+1 {
			places[n-1].last = max(places[n-1].last, last+3)
			continue
		}
		places = append(places, lines{line - 3, last + 3})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Edited %s", d.name)
	if n := len(d.changed); n > 1 {
		fmt.Fprintf(&b, " in %d places", n)
	}
	b.WriteString(". It now reads:\n")
	for i, p := range places {
		if i == maxPlaces {
			fmt.Fprintf(&b, "[… and %d places more …]\n", len(places)-i)
			break
		}
		if i > 0 {
			b.WriteString("[…]\n")
		}
		b.WriteString(excerpt(d.text, p.first, p.last))
	}
	return b.String()
}

// notUnique says where the text occurs.
func notUnique(name, text, old string) error {
	var lines []string
	line, from := 1, 0
	for len(lines) < 10 {
		i := strings.Index(text[from:], old)
		if i < 0 {
			break
		}
		line += strings.Count(text[from:from+i], "\n")
		lines = append(lines, fmt.Sprint(line))
		line += strings.Count(text[from+i:from+i+len(old)], "\n")
		from += i + len(old)
	}
	return fmt.Errorf("old_string occurs %d times in %s, at lines %s. Add lines around it so that it occurs once, or set replace_all",
		strings.Count(text, old), name, strings.Join(lines, ", "))
}

// excerpt shows the lines from first to last, numbered, at most 60 of them.
func excerpt(text string, first, last int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first, last = max(first, 1), min(last, len(lines))
	var b strings.Builder
	const half = 30
	for n := first; n <= last; n++ {
		if n == first+half && last-n > half {
			fmt.Fprintf(&b, "[… %d lines left out …]\n", last-n-half+1)
			n = last - half + 1
		}
		line := strings.TrimSuffix(lines[n-1], "\r")
		if len(line) > 300 {
			line, _ = plaintext.WholeRunes(line[:300], "")
			line += "…"
		}
		fmt.Fprintf(&b, "%d→%s\n", n, line)
	}
	return b.String()
}
