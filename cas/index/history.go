package index

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/united-workforce/uwf/protocol"
)

// Ended is a line of the history. Fields that a line has beyond these are
// ignored, and stay.
//
// A line with the status "resumed" records that a thread went back to
// threads.yaml. It ends nothing, so reading passes over it: what counts is
// threads.yaml, and below it the newest line that ended the thread. A crash while
// a thread is reopened thus leaves it either ended or active.
type Ended struct {
	Thread      string          `json:"thread"`
	Workflow    protocol.Hash   `json:"workflow"`
	Head        protocol.Hash   `json:"head"`
	Status      protocol.Status `json:"status"`
	CompletedAt int64           `json:"completedAt"` // ms
}

// Ended returns how a thread ended, or [ErrNoThread] if it is active or unknown.
func (x *Index) Ended(ctx context.Context, thread string) (Ended, error) {
	f, err := x.read(ctx, threadsFile)
	if err != nil {
		return Ended{}, err
	}
	active, err := f.get(thread)
	if err != nil {
		return Ended{}, err
	}
	if active != "" {
		return Ended{}, fmt.Errorf("%w: %s has not ended", ErrNoThread, thread)
	}
	return x.lastEnd(thread)
}

// History yields one line per ended thread, in the order in which they ended. A
// line that cannot be read is an error with its number, and the listing goes on.
//
// Nothing is locked. Who wants every thread reads Heads first: a thread that
// ends in between is then in both, never in neither.
func (x *Index) History(ctx context.Context) iter.Seq2[Ended, error] {
	return func(yield func(Ended, error) bool) {
		threads, err := x.read(ctx, threadsFile)
		if err != nil {
			yield(Ended{}, err)
			return
		}
		active := threads.parsed()
		data, err := x.readLog(historyFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Ended{}, err)
			return
		}
		lines := parseHistory(data)
		newest := make(map[string]int, len(lines))
		for i, line := range lines {
			if line.err == nil {
				newest[line.Thread] = i
			}
		}
		for i, line := range lines {
			switch {
			case line.err != nil:
				if !yield(Ended{}, invalid(x.path(historyFile), line.number, line.err.Error())) {
					return
				}
			case newest[line.Thread] != i:
			default:
				if _, ok := active.find(line.Thread); !ok && !yield(line.Ended, nil) {
					return
				}
			}
		}
	}
}

// historyLine is a line that ended a thread, or one that cannot be read.
type historyLine struct {
	Ended
	number int
	err    error
}

func parseHistory(data []byte) []historyLine {
	var lines []historyLine
	for number := 1; len(data) > 0; number++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		data = rest
		e, err := parseEnded(line)
		if errors.Is(err, errNothing) || err != nil && !whole || err == nil && e.Status == protocol.StatusResumed {
			continue
		}
		lines = append(lines, historyLine{e, number, err})
	}
	return lines
}

// errNothing means that a line says nothing: it is blank, or a power cut has
// left zeros in the place of an append that nobody was told had succeeded.
var errNothing = errors.New("says nothing")

func parseEnded(line []byte) (Ended, error) {
	if len(bytes.TrimSpace(line)) == 0 || bytes.IndexByte(line, 0) >= 0 {
		return Ended{}, errNothing
	}
	var e Ended
	if err := json.Unmarshal(line, &e); err != nil {
		return Ended{}, fmt.Errorf("not a line of the history: %w", err)
	}
	if e.Thread == "" {
		return Ended{}, errors.New("names no thread")
	}
	if !e.Head.Valid() {
		return Ended{}, fmt.Errorf("head %q is not a hash", e.Head)
	}
	if e.Status == "" { // the original's first lines have none
		e.Status = protocol.StatusCompleted
	}
	return e, nil
}
