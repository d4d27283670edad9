// Package terminal prevents untrusted text from controlling a terminal.
//
// [Of] wraps a stream that is a terminal in a [Writer]; package env does this for the standard streams, so
// that a command can't forget it. The Writer treats everything as text, and [plaintext.Escape] makes control
// sequences visible. Our own colors and cursor movements go through a [Painter], which accepts them only as a
// [Sequence]. Untrusted text therefore can't even set a color, which could hide words.
//
// Other streams are unchanged.
package terminal

import (
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/term"

	"github.com/united-workforce/uwf/util/plaintext"
)

// Writer writes text to a terminal. It is safe for concurrent use.
type Writer struct {
	file *os.File
	to   io.Writer // the file, or a pager for it

	mu   sync.Mutex
	rest []byte // beginning of a character
}

// Of returns the stream, or its Writer if it is a terminal.
func Of(stream *os.File) io.Writer {
	if stream == nil || !term.IsTerminal(int(stream.Fd())) {
		return stream
	}
	return &Writer{file: stream, to: stream}
}

// Through returns a Writer for the same terminal that sends escaped text to a pager.
func (w *Writer) Through(pager io.Writer) *Writer { return &Writer{file: w.file, to: pager} }

func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []byte
	out, w.rest = plaintext.Append(nil, append(w.rest, text...))
	w.rest = append([]byte(nil), w.rest...) // don't keep the caller's buffer
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}

// paint writes escaped text with our sequences.
func (w *Writer) paint(frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := append(plaintext.AppendEnd(nil, w.rest), frame...)
	w.rest = nil
	_, err := w.to.Write(out)
	return err
}

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	f := file(stream)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// Size returns the number of columns and lines of a terminal; zeros for other streams.
func Size(stream any) (columns, lines int) {
	f := file(stream)
	if f == nil {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0 // a file or a pipe
	}
	return columns, lines
}

// ForChild returns the raw stream for one of our programs or a pager. Output of other programs must not be
// sent there.
func ForChild(stream io.Writer) io.Writer {
	if w, ok := stream.(*Writer); ok {
		return w.file
	}
	return stream
}

func file(stream any) *os.File {
	switch s := stream.(type) {
	case *os.File:
		return s
	case *Writer:
		return s.file
	}
	return nil
}

// Sequence is a terminal control sequence. It is a number, so that untrusted text can't become one.
type Sequence int

// The supported sequences.
const (
	Plain      Sequence = iota // nothing
	ClearLine                  // and return to its beginning
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

// Painter builds a frame of text and sequences to draw at once. The zero value is empty.
type Painter struct{ frame []byte }

// Text adds escaped text.
func (p *Painter) Text(s string) { p.frame = append(p.frame, plaintext.Escape(s)...) }

// Control adds a sequence.
func (p *Painter) Control(s Sequence) { p.frame = append(p.frame, s.bytes()...) }

// Up moves the cursor up.
func (p *Painter) Up(lines int) {
	p.frame = append(append(p.frame, "\x1b["...), strconv.Itoa(lines)...)
	p.frame = append(p.frame, 'A')
}

// Draw writes the frame.
func (p *Painter) Draw(to io.Writer) error {
	if w, ok := to.(*Writer); ok {
		return w.paint(p.frame)
	}
	_, err := to.Write(p.frame)
	return err
}
