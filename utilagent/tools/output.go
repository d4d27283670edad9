package tools

import (
	"os"
	"strings"
	"sync"
	"time"
)

// How much of a command's output is kept. The end is worth more: it is where
// errors are.
const (
	keepHead = 9000
	keepTail = 20000
)

// output collects what a command writes, in bounded memory.
type output struct {
	mu      sync.Mutex
	head    []byte
	tail    []byte // up to twice keepTail
	dropped int    // bytes between head and tail
	lines   int    // in what was dropped

	pipe *os.File
	done chan struct{}
}

// collect reads a pipe to its end, in the background.
func collect(pipe *os.File) *output {
	o := &output{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := pipe.Read(buf)
			o.add(buf[:n])
			if err != nil {
				return // the end, or closed by text
			}
		}
	}()
	return o
}

func (o *output) add(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(keepHead-len(o.head), len(b))
	o.head = append(o.head, b[:n]...)
	o.tail = append(o.tail, b[n:]...)
	if len(o.tail) > 2*keepTail {
		o.shrink()
	}
}

// shrink cuts the tail to what is kept.
func (o *output) shrink() {
	extra := len(o.tail) - keepTail
	if extra <= 0 {
		return
	}
	o.dropped += extra
	o.lines += strings.Count(string(o.tail[:extra]), "\n")
	o.tail = append(o.tail[:0], o.tail[extra:]...)
}

// text waits for the end of the pipe and returns what came, as lines. A process
// that left the group may hold the pipe open for ever: after patience it is not
// waited for any more.
func (o *output) text(patience time.Duration) string {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	}
	_ = o.pipe.Close() // ends the reader if it still waits; nothing can be lost by it
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shrink()
	s := string(o.head) + string(o.tail)
	if o.dropped > 0 {
		s = join(string(o.head), string(o.tail), o.dropped, o.lines)
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}
