package output

import (
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/util/plaintext"
)

// How much of a stream is kept for messages.
const (
	headBytes = 8 << 10
	TailBytes = 56 << 10
)

// Tail keeps the head and the tail of what is written to it. Safe for concurrent use.
type Tail struct {
	mu      sync.Mutex
	head    []byte
	ring    []byte // the newest bytes after head
	next    int    // position of the oldest byte in a full ring
	dropped int64
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	take := min(len(b), headBytes-len(t.head))
	t.head, b = append(t.head, b[:take]...), b[take:]
	if cut := len(b) - TailBytes; cut > 0 {
		t.dropped += int64(cut)
		b = b[cut:]
	}
	room := min(len(b), TailBytes-len(t.ring))
	t.ring, b = append(t.ring, b[:room]...), b[room:]
	t.dropped += int64(len(b))
	for len(b) > 0 {
		copied := copy(t.ring[t.next:], b)
		t.next, b = (t.next+copied)%TailBytes, b[copied:]
	}
	return n, nil
}

// Text returns what was kept, made safe for display.
func (t *Tail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.head)
	if t.dropped > 0 {
		text += fmt.Sprintf("\n… %d bytes …\n", t.dropped)
	}
	return plaintext.Strip(text + string(t.ring[t.next:]) + string(t.ring[:t.next]))
}
