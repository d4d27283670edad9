package fileheads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

// Ended returns how a thread ended, or [heads.ErrNoThread] if it is active or unknown.
func (x *Heads) Ended(ctx context.Context, thread string) (heads.Ended, error) {
	f, err := x.read(ctx, threadsFile)
	if err != nil {
		return heads.Ended{}, err
	}
	active, err := f.get(thread)
	if err != nil {
		return heads.Ended{}, err
	}
	if active != "" {
		return heads.Ended{}, fmt.Errorf("%w: %s has not ended", heads.ErrNoThread, thread)
	}
	return x.lastEnd(thread)
}

// History yields one line per ended thread, in the order in which they ended. A
// line that cannot be read is an error with its number, and the listing goes on.
//
// Nothing is locked. Whoever wants every thread reads Heads first: a thread that
// ends in between is then in both, never in neither.
func (x *Heads) History(ctx context.Context) iter.Seq2[heads.Ended, error] {
	return func(yield func(heads.Ended, error) bool) {
		threads, err := x.read(ctx, threadsFile)
		if err != nil {
			yield(heads.Ended{}, err)
			return
		}
		active := threads.parsed()
		data, err := x.readLog(historyFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(heads.Ended{}, err)
			return
		}
		newest := map[string]int{} // the number of its line
		for line := range historyLines(data) {
			if line.err == nil {
				newest[line.value.Thread] = line.number
			}
		}
		for line := range historyLines(data) {
			switch e := line.value; {
			case line.err != nil:
				if !yield(heads.Ended{}, invalid(x.path(historyFile), line.number, line.err.Error())) {
					return
				}
			case newest[e.Thread] != line.number:
			default:
				if _, ok := active.find(e.Thread); !ok && !yield(e, nil) {
					return
				}
			}
		}
	}
}

// historyLines yields the lines that ended a thread, and those that cannot be read.
func historyLines(data []byte) iter.Seq[line[heads.Ended]] {
	return func(yield func(line[heads.Ended]) bool) {
		for l := range linesOf(data, parseEnded) {
			if l.err == nil && l.value.Status == protocol.StatusResumed {
				continue
			}
			if !yield(l) {
				return
			}
		}
	}
}

// parseEnded reads a line. Damage may have left good JSON, so what it says is
// checked, too.
func parseEnded(line []byte) (heads.Ended, error) {
	if isBlank(line) {
		return heads.Ended{}, errNothing
	}
	var e heads.Ended
	if err := json.Unmarshal(line, &e); err != nil {
		return heads.Ended{}, fmt.Errorf("not a line of the history: %w", err)
	}
	if e.Thread == "" {
		return heads.Ended{}, errors.New("names no thread")
	}
	if e.Status == "" { // the original's first lines have none
		e.Status = protocol.StatusCompleted
	}
	if err := checkSum(line); err != nil {
		return heads.Ended{}, err
	}
	return e, checkEnded(e)
}

// checkEnded is the first thing that no line of the history says.
func checkEnded(e heads.Ended) error {
	if problem := threadProblem(e.Thread); problem != "" {
		return errors.New(problem)
	}
	switch e.Status {
	case protocol.StatusCompleted, protocol.StatusCancelled, protocol.StatusResumed:
	default:
		return fmt.Errorf("status %q ends no thread", e.Status)
	}
	switch {
	case !e.Head.Valid():
		return fmt.Errorf("head %q is not a hash", e.Head)
	case e.Workflow != "" && !e.Workflow.Valid(): // a damaged thread can be ended, too
		return fmt.Errorf("workflow %q is not a hash", e.Workflow)
	case e.CompletedAt < 0 || e.CompletedAt > lastMs:
		return fmt.Errorf("completedAt %d is not a time in ms", e.CompletedAt)
	}
	return nil
}

// lastMs is the last millisecond of the year 9999.
const lastMs = 253_402_300_799_999
