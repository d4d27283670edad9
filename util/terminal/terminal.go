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
	"sync"

	"golang.org/x/term"

	"github.com/united-workforce/uwf/util/plaintext"
)

// Writer writes text to a terminal. It is safe for concurrent use.
type Writer struct {
	file *os.File
	to   io.Writer

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

// ForChild is a stream as a program of ours, or an editor, inherits it. What a
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
