package cliagent

import (
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/util/plaintext"
)

// How much of a stream is kept for messages.
const (
	headBytes = 8 << 10
	tailBytes = 56 << 10
)

// tail keeps the head and the tail of what is written to it. Safe for concurrent
// use.
type tail struct {
	mu      sync.Mutex
	head    []byte
	ring    []byte // the newest bytes after head
	next    int    // where the oldest byte of a full ring is
	dropped int64
}

// Write implements io.Writer. It never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	take := min(len(b), headBytes-len(t.head))
	t.head, b = append(t.head, b[:take]...), b[take:]
	if cut := len(b) - tailBytes; cut > 0 {
		t.dropped += int64(cut)
		b = b[cut:]
	}
	room := min(len(b), tailBytes-len(t.ring))
	t.ring, b = append(t.ring, b[:room]...), b[room:]
	t.dropped += int64(len(b))
	for len(b) > 0 {
		copied := copy(t.ring[t.next:], b)
		t.next, b = (t.next+copied)%tailBytes, b[copied:]
	}
	return n, nil
}

// text is what was kept, fit to be shown.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.head)
	if t.dropped > 0 {
		text += fmt.Sprintf("\n… %d bytes …\n", t.dropped)
	}
	return plaintext.Strip(text + string(t.ring[t.next:]) + string(t.ring[:t.next]))
}

// Clean makes a stranger's text safe to print: see [plaintext.Strip].
func Clean(s string) string { return plaintext.Strip(s) }
