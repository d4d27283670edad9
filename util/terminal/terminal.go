// Package terminal keeps strangers' words from being obeyed by a terminal.
//
// [Of] puts a [Writer] before a stream that is a terminal; package env does so for
// the standard streams, so a command cannot forget it. Whatever is written there is
// text: [plaintext.Escape] shows what a terminal would obey. Colours and movements of
// our own go another way, through a [Painter], which takes them only as a [Sequence].
// So not even a colour gets through from a stranger: one can hide words.
//
// A stream that is no terminal keeps its bytes.
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
	to   io.Writer // the file, or a pager before it

	mu   sync.Mutex
	rest []byte // the beginning of a character
}

// Of is the stream itself, or its Writer if it is a terminal.
func Of(stream *os.File) io.Writer {
	if stream == nil || !term.IsTerminal(int(stream.Fd())) {
		return stream
	}
	return &Writer{file: stream, to: stream}
}

// Through is the same terminal behind a pager, which gets cleaned text.
func (w *Writer) Through(pager io.Writer) *Writer { return &Writer{file: w.file, to: pager} }

// Write implements io.Writer.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []byte
	out, w.rest = plaintext.Append(nil, append(w.rest, text...))
	w.rest = append([]byte(nil), w.rest...) // not a part of the caller's
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}

// paint writes what has been cleaned, with our sequences.
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

// Size is how many columns and lines a terminal has; zeros if the stream is none.
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

// ForChild is a stream as a program of ours, or a pager, inherits it. What a
// stranger's program says must not get there.
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
