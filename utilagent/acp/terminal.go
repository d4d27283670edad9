package acp

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/proc"
)

// Bounds of one command.
const (
	terminalLimit = 30 * time.Minute
	killGrace     = 2 * time.Second
	pipeGrace     = time.Second // for output of what has left the group
)

// terminal is one command.
type terminal struct {
	child  *proc.Child
	kill   context.CancelFunc
	ended  chan struct{}
	status proc.Status // once ended is closed
	read   chan struct{}

	mu      sync.Mutex
	output  []byte // the newest
	limit   int
	dropped bool
}

// startTerminal starts a command with both streams in one.
func startTerminal(c proc.Command, limit int) (*terminal, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.Stdout, c.Stderr = write, write
	child, err := proc.Start(c)
	_ = write.Close() // ours: nothing was written to it
	if err != nil {
		_ = read.Close()
		return nil, err
	}
	ctx, kill := context.WithTimeout(context.Background(), terminalLimit)
	t := &terminal{child: child, kill: kill, ended: make(chan struct{}), read: make(chan struct{}), limit: limit}
	go t.collect(read)
	go func() {
		defer kill()
		status, err := child.Wait(ctx, killGrace)
		if err != nil && status.Signal == "" && status.Code == 0 {
			status.Code = -1
		}
		// Whoever has left the group may hold the pipe open: it is not waited for long.
		select {
		case <-t.read:
		case <-time.After(pipeGrace):
			_ = read.Close()
			<-t.read
		}
		t.status = status
		close(t.ended)
	}()
	return t, nil
}

// collect keeps the newest output.
func (t *terminal) collect(pipe *os.File) {
	defer close(t.read)
	defer pipe.Close() // only read from
	buf := make([]byte, 32<<10)
	for {
		n, err := pipe.Read(buf)
		t.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (t *terminal) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, b...)
	if len(t.output) > 2*t.limit+(64<<10) { // not at each read: that would copy it all each time
		t.shrink()
	}
}

// shrink drops the oldest output, up to the beginning of a character.
func (t *terminal) shrink() {
	cut := len(t.output) - t.limit
	if cut <= 0 {
		return
	}
	for n := 0; n < utf8.UTFMax && cut < len(t.output) && !utf8.RuneStart(t.output[cut]); n++ {
		cut++
	}
	t.output = append(t.output[:0], t.output[cut:]...)
	t.dropped = true
}

// text is the output so far.
func (t *terminal) text() (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrink()
	return strings.ToValidUTF8(string(t.output), "\uFFFD"), t.dropped
}

// exit is how the command ended; nil while it runs.
func (t *terminal) exit() *exitStatus {
	select {
	case <-t.ended:
	default:
		return nil
	}
	if t.status.Signal != "" {
		return &exitStatus{Signal: &t.status.Signal}
	}
	return &exitStatus{Code: &t.status.Code}
}
