package terminal

import (
	"io"
	"strconv"

	"github.com/united-workforce/uwf/util/plaintext"
)

// Sequence is one of the things that we have a terminal do. It is a number, so that
// no text that was read can become one.
type Sequence int

// The sequences that we use.
const (
	Plain      Sequence = iota // nothing
	ClearLine                  // and go to its beginning
	ClearBelow                 // from the cursor to the end of the screen
	Normal                     // ends all below
	Bold
	Faint
	Red
	Green
	Yellow
)

func (s Sequence) bytes() string {
	switch s {
	case ClearLine:
		return "\r\x1b[K"
	case ClearBelow:
		return "\x1b[J"
	case Normal:
		return "\x1b[m"
	case Bold:
		return "\x1b[1m"
	case Faint:
		return "\x1b[2m"
	case Red:
		return "\x1b[31m"
	case Green:
		return "\x1b[32m"
	case Yellow:
		return "\x1b[33m"
	}
	return ""
}

// Painter makes up what is drawn on a terminal at once: text, and sequences.
// The zero value is empty.
type Painter struct{ frame []byte }

// Text adds a text; what a terminal would obey in it is shown.
func (p *Painter) Text(s string) { p.frame = append(p.frame, plaintext.Escape(s)...) }

// Control adds a sequence.
func (p *Painter) Control(s Sequence) { p.frame = append(p.frame, s.bytes()...) }

// Up goes up some lines.
func (p *Painter) Up(lines int) {
	p.frame = append(append(p.frame, "\x1b["...), strconv.Itoa(lines)...)
	p.frame = append(p.frame, 'A')
}

// Draw writes it all.
func (p *Painter) Draw(to io.Writer) error {
	if w, ok := to.(*Writer); ok {
		return w.paint(p.frame)
	}
	_, err := to.Write(p.frame)
	return err
}
