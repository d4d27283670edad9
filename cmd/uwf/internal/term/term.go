// Package term formats output and parses flags for people: tables, colours, times and numbers.
package term

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

// Page writes a command's text output. After the first write error it discards everything; [Page.Err] returns
// the error.
type Page struct {
	To      io.Writer
	Colours bool // the stream supports colours
	Width   int  // of the terminal; 0 for other streams, whose tables are not cut
	err     error
}

// Err returns the first error.
func (p *Page) Err() error { return p.err }

// Fail sets the error of a page unless err is nil or there is one already.
func (p *Page) Fail(err error) { p.err = cmp.Or(p.err, err) }

func (p *Page) Write(text []byte) (n int, err error) {
	if p.err == nil {
		n, p.err = p.To.Write(text)
	}
	return n, p.err
}

// Printf writes a text.
func (p *Page) Printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *Page) draw(frame *terminal.Painter) {
	if p.err == nil {
		p.err = frame.Draw(p.To)
	}
}

// Coloured writes a text whose lines have colours.
func (p *Page) Coloured(text string, of func(line string) terminal.Sequence) {
	if !p.Colours {
		p.Printf("%s", text)
		return
	}
	var frame terminal.Painter
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		Painted(&frame, of(line), line)
		if end {
			frame.Text("\n")
		}
	}
	p.draw(&frame)
}

// Table is aligned text. Cells contain text from agents, so control characters are removed and each cell is
// one line.
type Table struct {
	Rows   [][]string
	Headed bool // the first row is the header
}

// NewTable returns an empty table with a header.
func NewTable(header ...string) *Table { return &Table{Rows: [][]string{header}, Headed: true} }

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Table writes the rows of a table and removes them from it.
func (p *Page) Table(t *Table) {
	var widths []int
	for _, r := range t.Rows {
		widths = append(widths, make([]int, max(0, len(r)-len(widths)))...)
		for i := range r {
			r[i] = plaintext.Line(r[i])
			widths[i] = max(widths[i], Length(r[i]))
		}
	}
	fit(widths, p.Width)
	var frame terminal.Painter
	for n, r := range t.Rows {
		for len(r) > 0 && r[len(r)-1] == "" {
			r = r[:len(r)-1]
		}
		for i, cell := range r {
			in := terminal.Plain
			if Length(cell) > widths[i] {
				cell = FirstLine(cell, widths[i])
			}
			switch {
			case p.Colours && n == 0 && t.Headed:
				in = terminal.Faint
			case p.Colours:
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
	p.draw(&frame)
}

// fit narrows the widest columns until a table is at most width wide.
func fit(widths []int, width int) {
	const narrowest = 8 // an ID in a list
	for width > 0 {
		total, widest := 2*(len(widths)-1), 0
		for i, w := range widths {
			total += w
			if w > widths[widest] {
				widest = i
			}
		}
		if total <= width || widths[widest] <= narrowest {
			return
		}
		widths[widest]--
	}
}

// cellColour returns the colour for a status or verdict.
func cellColour(cell string) terminal.Sequence {
	good := []string{string(protocol.StatusCompleted), "ok", "added"}
	bad := []string{string(protocol.StatusError), string(protocol.StatusCorrupt), string(protocol.StatusFailed), "problem", "removed", "damaged", "fail"}
	care := []string{string(protocol.StatusSuspended), "warning", "warn", "changed"}
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

// FirstLine returns the beginning of a text, as one line of at most n characters.
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

// LastWords returns the end of a text, as one line of at most n characters.
func LastWords(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(plaintext.Line(s)), " "))
	if len(r) > n {
		return "…" + string(r[len(r)-n+1:])
	}
	return string(r)
}

// Lines returns an untrusted text with all lines but the first indented.
func Lines(text, indent string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, plaintext.Line(strings.TrimSuffix(line, "\n")))
	}
	return strings.Join(lines, "\n"+indent)
}

// Length returns the number of characters of a text.
func Length(s string) int { return utf8.RuneCountInString(s) }

// Joined joins the non-empty parts of a line.
func Joined(parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, "  ")
}

// Values writes aligned "name value" lines without empty values.
func (p *Page) Values(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" && len(pairs[i]) > width {
			width = len(pairs[i])
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			p.Printf("%-*s  %s\n", width, pairs[i], plaintext.Line(pairs[i+1]))
		}
	}
}

// PaintLine writes a line in a colour.
func PaintLine(w io.Writer, in terminal.Sequence, text string) {
	var frame terminal.Painter
	Painted(&frame, in, text)
	frame.Text("\n")
	_ = frame.Draw(w) // an error has no recipient
}

// Painted adds a text in a colour.
func Painted(frame *terminal.Painter, in terminal.Sequence, text string) {
	if in == terminal.Plain {
		frame.Text(text)
		return
	}
	frame.Control(in)
	frame.Text(text)
	frame.Control(terminal.Normal)
}

// OfDiff returns the colour for a line of a diff.
func OfDiff(line string) terminal.Sequence {
	switch {
	case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
		return terminal.Bold
	case strings.HasPrefix(strings.TrimSpace(line), "+"):
		return terminal.Green
	case strings.HasPrefix(strings.TrimSpace(line), "-"):
		return terminal.Red
	}
	return terminal.Plain
}

// OfGraph returns the colour for a line of a thread's graph: the current role, and those already visited.
func OfGraph(line string) terminal.Sequence {
	switch {
	case strings.Contains(line, " ◀"):
		return terminal.Bold
	case strings.Contains(line, " ×"):
		return terminal.Green
	}
	return terminal.Faint
}

// OfPicture returns the colour for a line of a workflow's graph: ends, and where it waits.
func OfPicture(line string) terminal.Sequence {
	switch {
	case strings.Contains(line, protocol.EndNode):
		return terminal.Green
	case strings.Contains(line, protocol.SuspendNode):
		return terminal.Yellow
	}
	return terminal.Plain
}

// OfFinding returns the colour for a line of a diagnosis.
func OfFinding(line string) terminal.Sequence {
	severity, _, _ := strings.Cut(line, " ")
	return cellColour(severity)
}

// Checked returns a flag whose value is checked before the command runs.
func Checked(f ucli.StringFlag, check func(name, text string) error) *ucli.StringFlag {
	f.Action = func(_ *ucli.Context, text string) error { return check(f.Name, text) }
	return &f
}

// OneOf returns a flag with a fixed set of values.
func OneOf(f ucli.StringFlag, known ...string) *ucli.StringFlag {
	return Checked(f, func(name, text string) error {
		if slices.Contains(known, text) {
			return nil
		}
		message := fmt.Sprintf("--%s must be one of %s, got: %s", name, strings.Join(known, ", "), text)
		return cmdline.UsageError(message, cmdline.DidYouMean("--"+name+" ", text, known)...)
	})
}

// Number returns a flag for a decimal number of at least least; example is used in the error. The library's
// own number flag accepts 010 and 0x10.
func Number(f ucli.StringFlag, least, example int) *ucli.StringFlag {
	return Checked(f, func(name, text string) error {
		if n, err := Natural(text); err == nil && n >= least {
			return nil
		}
		want := "non-negative"
		if least > 0 {
			want = "positive"
		}
		return cmdline.UsageError(fmt.Sprintf("--%s must be a %s integer, got: %s", name, want, text), fmt.Sprintf("--%s %d", name, example))
	})
}

// NumberOf returns the value of a [Number], or 0.
func NumberOf(c *ucli.Context, name string) int {
	n, _ := Natural(c.String(name)) // validated when the flag was parsed
	return n
}

// Positive parses a decimal number from 1, without signs or other bases.
func Positive(s string) (int, error) {
	n, err := Natural(s)
	if err == nil && n == 0 {
		err = fmt.Errorf("%q is not positive", s)
	}
	return n, err
}

// Natural parses a decimal number from 0.
func Natural(s string) (int, error) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, fmt.Errorf("%q is not a number", s)
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return n, nil
}

var relativeTime = lazyregexp.New(`^([0-9]{1,9})([dhm])$`)

// ParseTime parses the value of --after and --before: "7d", "24h" and "30m" mean that long before now;
// otherwise it is a date or a date and time. As in the original (and in JavaScript), a bare ISO date is in
// UTC, and a time without a zone is local.
func ParseTime(s string, now time.Time, local *time.Location) (time.Time, error) {
	s = strings.TrimSpace(s)
	if m := relativeTime().FindStringSubmatch(s); m != nil {
		n, err := Natural(m[1])
		if err == nil {
			unit := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute}[m[2]]
			if d := time.Duration(n) * unit; d/unit == time.Duration(n) {
				return now.Add(-d), nil
			}
		}
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.UTC); err == nil {
		return t, nil
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"January 2 2006", "January 2, 2006", "Jan 2 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006",
	} {
		if t, err := time.ParseInLocation(layout, s, local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, cmdline.UsageError(fmt.Sprintf("invalid time format: %s (expected ISO date or relative like '7d')", s),
		"use a date such as "+now.Format(time.DateOnly)+", a time such as "+now.Format("2006-01-02T15:04")+", or an age such as 7d, 24h or 30m")
}

// Timeout returns --timeout.
func Timeout(usage string) ucli.Flag {
	return Span(ucli.StringFlag{Name: "timeout", Usage: usage + ", such as 90s, 30m or 2h"})
}

// Span returns a flag for a duration. The library's own reports a mistake only as "parse error".
func Span(f ucli.StringFlag) *ucli.StringFlag {
	return Checked(f, func(name, text string) error {
		if readSpan(text) > 0 {
			return nil
		}
		return cmdline.UsageError(fmt.Sprintf("--%s must be a duration such as 90, 90s, 30m or 2h, got %q", name, text), "--"+name+" 30m")
	})
}

// SpanOf returns the value of a [Span], or 0.
func SpanOf(c *ucli.Context, name string) time.Duration { return readSpan(c.String(name)) }

// readSpan parses a duration. It returns 0 if it is invalid.
func readSpan(text string) time.Duration {
	if n, err := Positive(text); err == nil { // as in the original
		return time.Duration(n) * time.Second
	}
	d, _ := time.ParseDuration(text)
	return d
}

// Spent describes tokens and cost briefly. withoutUsage and withoutCost are the numbers of steps with unknown
// values, which make the figures lower bounds. A lower bound of zero is omitted.
func Spent(u *protocol.Usage, withoutUsage, withoutCost int) string {
	tokens := ""
	if u != nil && withoutUsage+withoutCost == 0 && u.Turns == 0 && u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens+u.OutputTokens == 0 {
		return "" // no model was used
	}
	if u.Counted() && (u.Tokens() > 0 || withoutUsage == 0) {
		tokens = least(withoutUsage) + inShort(u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens) + "/" + inShort(u.OutputTokens)
	}
	return Joined(tokens, Dollars(u, withoutCost))
}

// Dollars describes a cost briefly, or returns "" if it is unknown.
func Dollars(u *protocol.Usage, withoutCost int) string {
	if u == nil || u.CostUSD == nil || *u.CostUSD == 0 && withoutCost > 0 {
		return ""
	}
	return least(withoutCost) + protocol.Dollars(*u.CostUSD)
}

// least marks a lower bound.
func least(unknown int) string {
	if unknown == 0 {
		return ""
	}
	return "≥"
}

// inShort formats a number in about four characters: 120, 5.4k, 1.2M.
func inShort(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e3), ".0") + "k"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}
