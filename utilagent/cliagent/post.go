package cliagent

import (
	"io"
	"sync"
	"time"

	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// mailTime is how often a working program is told what people have said meanwhile.
const mailTime = time.Second

// post passes on what people say to a program that can hear it while it works. A letter counts
// as heard when the program says so, not when it was written: the next call repeats what it
// had not read when it ended. Safe for concurrent use.
type post struct {
	hearer Hearer
	host   *Host
	stdin  io.WriteCloser
	over   chan struct{}

	mu     sync.Mutex
	closed bool
	sent   map[string]agentkit.Letter // by the id that the program knows
	open   int                        // of them, not heard
}

// newPost begins to tell a program what is in the mailbox.
func newPost(d Hearer, h *Host, stdin io.WriteCloser) *post {
	t := &post{hearer: d, host: h, stdin: stdin, over: make(chan struct{}), sent: map[string]agentkit.Letter{}}
	go func() {
		tick := time.NewTicker(mailTime)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.deliver()
			case <-t.over:
				return
			}
		}
	}()
	return t
}

// deliver writes what was not written yet. A program that does not read it is ending.
func (t *post) deliver() {
	for _, l := range t.host.mail() {
		if line, err := t.address(l); err != nil || t.write(line) != nil {
			return
		}
	}
}

func (t *post) write(line []byte) error {
	_, err := t.stdin.Write(line)
	return err
}

// address is the line that tells a letter, nothing if it was told.
func (t *post) address(l agentkit.Letter) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.sent {
		if other == l {
			return nil, nil
		}
	}
	if t.closed {
		return nil, nil
	}
	id, err := newUUID(t.host.rand)
	if err != nil {
		return nil, err
	}
	t.sent[id] = l
	t.open++
	return t.hearer.Tell(id, l.Text)
}

// sees takes an event of the program, and reports whether it means something. A program that
// has nothing more to say, and has heard everything, is told that nothing more will come.
func (t *post) sees(e *Event) bool {
	if t == nil {
		return e.Kind != Heard
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case Heard:
		l, known := t.sent[e.ID]
		if known {
			t.open--
		}
		e.letter = l
		return known
	case Done:
		if t.open == 0 {
			t.closed = true
			_ = t.stdin.Close() // it reads the end
		}
	}
	return true
}

func (t *post) close() { close(t.over) }
