package cliagent

import (
	"errors"
	"strings"

	"github.com/united-workforce/uwf/step/frontmatter"
)

// answer follows which of the model's texts is the answer: the last one after the
// last tool event. Models like to add a word after it, so the last text that
// begins with a frontmatter block is kept as well.
type answer struct {
	last   text
	open   bool // last goes on with the next piece
	id     string
	framed string
}

// text adds a complete text.
func (a *answer) text(s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	a.end()
	a.last.add(s)
}

// delta adds a piece of a text.
func (a *answer) delta(s, id string) {
	if !a.open || id != a.id {
		a.end()
	}
	a.open, a.id = true, id
	a.last.add(s)
}

// tool notes that earlier texts are not the final answer.
func (a *answer) tool() {
	a.end()
	a.last = text{}
}

// pause ends a text that came in pieces.
func (a *answer) pause() { a.open = false }

// end finishes the current text.
func (a *answer) end() {
	a.keep(a.last.String())
	a.last = text{}
	a.open = false
}

func (a *answer) keep(s string) {
	if isFramed(s) {
		a.framed = s
	}
}

// final is the answer. said is what the program itself reports as the answer; "" if it reports
// none.
func (a *answer) final(said string) string {
	if strings.TrimSpace(said) == "" {
		said = a.last.String()
	}
	if a.framed != "" && !isFramed(said) {
		return a.framed
	}
	return said
}

// maxText is how much of a text is held in memory. A longer text keeps its beginning, which
// has the frontmatter.
const maxText = 2 << 20

// text collects the pieces of a text, up to maxText.
type text struct{ pieces []byte }

func (t *text) add(s string) { t.pieces = append(t.pieces, s[:min(len(s), maxText-len(t.pieces))]...) }

func (t *text) empty() bool { return len(t.pieces) == 0 }

// String is the text; a character that was cut in two at its end is left out.
func (t *text) String() string { return strings.ToValidUTF8(string(t.pieces), "") }

// isFramed reports whether a text begins with a frontmatter block.
func isFramed(s string) bool {
	_, err := frontmatter.Parse(s)
	return !errors.Is(err, frontmatter.ErrNone)
}
