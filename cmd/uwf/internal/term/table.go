// Package term has what the commands print with: tables, colours, times and numbers as people
// type and read them.
package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

// Table is aligned text for people. Cells hold what agents wrote, so what a
// terminal obeys is taken out: each is one line.
type Table struct {
	Rows    [][]string
	colours bool
	Headed  bool // the first row is the header
}

// NewTable is an empty table with a header.
func NewTable(header ...string) *Table { return &Table{Rows: [][]string{header}, Headed: true} }

// InColour is the table with colours for a stream that may have them.
func (t *Table) InColour(may bool) *Table {
	t.colours = may
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the rows and forgets them.
func (t *Table) Print(w io.Writer) error {
	var widths []int
	for _, r := range t.Rows {
		widths = append(widths, make([]int, max(0, len(r)-len(widths)))...)
		for i := range r {
			r[i] = plaintext.Line(r[i])
			widths[i] = max(widths[i], Length(r[i]))
		}
	}
	var frame terminal.Painter
	for n, r := range t.Rows {
		for len(r) > 0 && r[len(r)-1] == "" {
			r = r[:len(r)-1]
		}
		for i, cell := range r {
			in := terminal.Plain
			switch {
			case t.colours && n == 0 && t.Headed:
				in = terminal.Faint
			case t.colours:
				in = cellColour(cell)
			}
			Painted(&frame, in, cell)
			if i < len(r)-1 {
				frame.Text(strings.Repeat(" ", widths[i]-Length(cell)+2))
			}
		}
		frame.Text("\n")
	}
	t.Rows, t.Headed = t.Rows[:0], false
	return frame.Draw(w)
}

// cellColour is the colour of a cell that is a status or a verdict, if it is one.
func cellColour(cell string) terminal.Sequence {
	good := []string{string(protocol.StatusCompleted), "ok", "added"}
	bad := []string{string(protocol.StatusError), string(protocol.StatusCorrupt), "problem", "removed", "damaged"}
	care := []string{string(protocol.StatusSuspended), "warning", "changed"}
	switch {
	case slices.Contains(good, cell):
		return terminal.Green
	case slices.Contains(bad, cell):
		return terminal.Red
	case slices.Contains(care, cell):
		return terminal.Yellow
	case cell == string(protocol.StatusRunning):
		return terminal.Bold
	case cell == string(protocol.StatusCancelled):
		return terminal.Faint
	}
	return terminal.Plain
}

// FirstLine is the beginning of a text, for one line of at most n characters.
func FirstLine(s string, n int) string {
	s, _, cut := strings.Cut(strings.TrimSpace(s), "\n")
	r := []rune(plaintext.Line(s))
	if len(r) > n {
		r, cut = r[:n-1], true
	}
	if cut {
		return string(r) + "…"
	}
	return string(r)
}

// LastWords is the end of a text, for one line of at most n characters.
func LastWords(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(plaintext.Line(s)), " "))
	if len(r) > n {
		return "…" + string(r[len(r)-n+1:])
	}
	return string(r)
}

// Length counts the characters of a text.
func Length(s string) int { return utf8.RuneCountInString(s) }

// Joined is the parts of a line that are not empty.
func Joined(parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, "  ")
}

// TextLines prints aligned "name  value" lines, leaving out empty values.
func TextLines(w io.Writer, pairs ...string) error {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" && len(pairs[i]) > width {
			width = len(pairs[i])
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, pairs[i], plaintext.Line(pairs[i+1])); err != nil {
			return err
		}
	}
	return nil
}
