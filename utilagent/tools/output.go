package tools

import (
	"bytes"
	"fmt"
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

	create  func() (*os.File, error) // of a file for everything
	file    *os.File                 // nil: not needed yet, or given up
	written int
	cut     bool // the file does not have everything

	pipe *os.File
	done chan struct{}
}

// collect reads a pipe to its end, in the background. What is too long to keep
// in memory goes into a file that create makes.
func collect(pipe *os.File, create func() (*os.File, error)) *output {
	o := &output{pipe: pipe, create: create, done: make(chan struct{})}
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
	o.save(b)
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
	if o.dropped == 0 { // up to here memory has everything
		if f, err := o.create(); err == nil {
			o.file = f
			o.save(o.head)
			o.save(o.tail)
		}
	}
	o.dropped += extra
	o.lines += bytes.Count(o.tail[:extra], []byte{'\n'})
	o.tail = append(o.tail[:0], o.tail[extra:]...)
}

// save adds to the file, if there is one. A disk that is full ends it: then a
// model has to do with what it sees.
func (o *output) save(b []byte) {
	if o.file == nil || o.cut {
		return
	}
	room := maxKeptBytes - o.written
	n, err := o.file.Write(b[:min(room, len(b))])
	o.written += n
	o.cut = err != nil || n < len(b)
}

// whole closes the file and returns how to name it, "" if there is none.
func (o *output) whole() string {
	if o.file == nil {
		return ""
	}
	if err := o.file.Close(); err != nil || o.written == 0 {
		return ""
	}
	if o.cut {
		return fmt.Sprintf("%s (its first %d bytes)", o.file.Name(), o.written)
	}
	return o.file.Name()
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
		s = join(string(o.head), string(o.tail), o.dropped, o.lines, o.whole())
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}
