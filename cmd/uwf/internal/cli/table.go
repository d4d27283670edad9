package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/united-workforce/uwf/util/plaintext"
)

// table is aligned text for people. Cells hold what agents wrote, so what a
// terminal obeys is taken out: each is one line.
type table struct{ rows [][]string }

func newTable(header ...string) *table { return &table{rows: [][]string{header}} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range t.rows {
		for i := range r {
			r[i] = plaintext.Line(r[i])
		}
		if _, err := fmt.Fprintln(tw, strings.Join(r, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
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
