package fileheads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Adoption brings a thread to where it stands elsewhere.
type Adoption struct {
	Thread string
	Was    protocol.Hash // its head here, active or ended; "": it is new here
	Head   protocol.Hash
	End    *heads.Ended // how it has ended; nil: it is active
	Facts  heads.Facts  // what is known of it from now on, beside what was
}

// Adopt makes many adoptions in one change of each file, facts first, then the
// history. A cut
// in between leaves threads active that should have ended, or unknown that should
// be active: adopting again goes on from there. Errors: [*heads.ConflictError] if one
// of the threads is not where it was, and then nothing has changed.
func (x *Heads) Adopt(ctx context.Context, all []Adoption, atMs int64) error {
	if len(all) == 0 {
		return ctx.Err()
	}
	for _, a := range all {
		if err := checkThread(a.Thread, a.Head); err != nil {
			return err
		}
	}
	return x.changeThreads(ctx, func(f *file) error {
		ends, damaged, err := x.lastEnds()
		if err != nil {
			return err
		}
		var lines []heads.Ended
		facts := map[string]heads.Facts{}
		for _, a := range all {
			ended, hasEnded := ends[a.Thread]
			if damaged && !hasEnded {
				// A line that cannot be read may be this thread's.
				if _, err := x.lastEnd(a.Thread); err != nil && !errors.Is(err, heads.ErrNoThread) {
					return err
				}
			}
			if err := a.compare(f, ended.Head); err != nil {
				return err
			}
			if line, ok := a.line(f, ended, hasEnded, atMs); ok {
				lines = append(lines, line)
			}
			facts[a.Thread] = a.Facts
			if a.End == nil {
				f.set(a.Thread, a.Head)
			} else {
				f.remove(a.Thread)
			}
		}
		if err := x.appendFacts(ctx, f, facts); err != nil {
			return err
		}
		return x.appendLines(ctx, lines)
	})
}

// compare is the compare of compare-and-swap; ended is the head that the thread
// ended with, "" if it has not.
func (a Adoption) compare(f *file, ended protocol.Hash) error {
	got, err := f.get(a.Thread)
	if err != nil {
		return err
	}
	if got == "" {
		got = ended
	}
	if got != a.Was {
		return &heads.ConflictError{Thread: a.Thread, Want: a.Was, Got: got}
	}
	return nil
}

// line is what the history has to say of an adoption, if anything.
func (a Adoption) line(f *file, ended heads.Ended, hasEnded bool, atMs int64) (heads.Ended, bool) {
	active, _ := f.get(a.Thread) // compare has asked before
	switch {
	case a.End != nil:
		line := *a.End
		line.Thread, line.Head = a.Thread, a.Head
		return line, true
	case hasEnded && active == "":
		ended.Status, ended.CompletedAt = protocol.StatusResumed, atMs
		return ended, true
	}
	return heads.Ended{}, false
}

func isEnded(line []byte) error {
	_, err := parseEnded(line)
	return err
}

// lastEnds is how each thread of the history ended last; damaged: there are lines
// that cannot be read.
func (x *Heads) lastEnds() (ends map[string]heads.Ended, damaged bool, err error) {
	data, err := x.readLog(historyFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	ends = map[string]heads.Ended{}
	for line := range historyLines(data) {
		if line.err != nil {
			damaged = true
			continue
		}
		ends[line.value.Thread] = line.value
	}
	return ends, damaged, nil
}

// appendLines adds lines to the history, durably and at once.
func (x *Heads) appendLines(ctx context.Context, lines []heads.Ended) error {
	var text []byte
	for _, e := range lines {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("line of the history: %w", err)
		}
		text = append(text, summed(line)...)
	}
	if len(text) == 0 {
		return nil
	}
	return x.locked(ctx, historyLock, func() error {
		start, err := x.mendTail(historyFile, isEnded)
		if err != nil {
			return err
		}
		return durable.AppendFile(x.fsys, x.path(historyFile), append(start, text...), 0o644)
	})
}
