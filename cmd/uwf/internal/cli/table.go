package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

// table is aligned text for people. Cells hold what agents wrote, so what a
// terminal obeys is taken out: each is one line.
type table struct {
	rows    [][]string
	colours bool
	headed  bool // the first row is the header
}

func newTable(header ...string) *table { return &table{rows: [][]string{header}, headed: true} }

// inColour is the table with colours for a stream that may have them.
func (t *table) inColour(may bool) *table {
	t.colours = may
	return t
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the rows and forgets them.
func (t *table) print(w io.Writer) error {
	var widths []int
	for _, r := range t.rows {
		widths = append(widths, make([]int, max(0, len(r)-len(widths)))...)
		for i := range r {
			r[i] = plaintext.Line(r[i])
			widths[i] = max(widths[i], length(r[i]))
		}
	}
	var frame terminal.Painter
	for n, r := range t.rows {
		for len(r) > 0 && r[len(r)-1] == "" {
			r = r[:len(r)-1]
		}
		for i, cell := range r {
			in := terminal.Plain
			switch {
			case t.colours && n == 0 && t.headed:
				in = terminal.Faint
			case t.colours:
				in = cellColour(cell)
			}
			painted(&frame, in, cell)
			if i < len(r)-1 {
				frame.Text(strings.Repeat(" ", widths[i]-length(cell)+2))
			}
		}
		frame.Text("\n")
	}
	t.rows, t.headed = t.rows[:0], false
	return frame.Draw(w)
}

// cellColour is the colour of a cell that is a status or a verdict, if it is one.
func cellColour(cell string) terminal.Sequence {
	good := []string{string(protocol.StatusCompleted), "ok", "added"}
	bad := []string{string(protocol.StatusFailed), string(protocol.StatusCorrupt), "problem", "removed", "damaged"}
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

// firstLine is the beginning of a text, for one line of at most n characters.
func firstLine(s string, n int) string {
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

// lastWords is the end of a text, for one line of at most n characters.
func lastWords(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(plaintext.Line(s)), " "))
	if len(r) > n {
		return "…" + string(r[len(r)-n+1:])
	}
	return string(r)
}
