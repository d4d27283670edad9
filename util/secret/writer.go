package secret

import (
	"io"
	"sync"
)

// Writer hides secrets in a stream, also those that come in pieces. Safe for
// concurrent use.
type Writer struct {
	mu   sync.Mutex
	set  *Set
	to   io.Writer
	rest string
}

// NewWriter makes a writer. What it holds back, as it may be the beginning of a
// secret, is written by [Writer.Flush].
func (s *Set) NewWriter(to io.Writer) *Writer { return &Writer{set: s, to: to} }

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var shown string
	shown, w.rest = w.set.Split(w.rest + string(b))
	if _, err := io.WriteString(w.to, shown); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush writes what was held back: nothing more comes.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.set.Hide(w.rest)
	w.rest = ""
	_, err := io.WriteString(w.to, rest)
	return err
}
