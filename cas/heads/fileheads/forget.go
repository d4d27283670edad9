package fileheads

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/util/durable"
)

// Forget removes all lines of ended threads from the history, and their facts. A thread
// that is active again, or unknown, is left alone, and so is any line that cannot be read.
// It returns how each of the forgotten threads had ended.
func (x *Heads) Forget(ctx context.Context, threads map[string]bool) (forgotten []heads.Ended, err error) {
	err = x.locked(ctx, threadsLock, func() error {
		f, err := x.read(ctx, threadsFile)
		if err != nil {
			return err
		}
		active := f.parsed()
		gone := func(thread string) bool {
			if !threads[thread] {
				return false
			}
			_, ok := active.find(thread)
			return !ok
		}
		return x.locked(ctx, historyLock, func() error {
			if forgotten, err = x.forget(gone); err != nil {
				return err
			}
			// After the history: facts of a thread that is gone do no harm.
			return x.rewriteFacts(ctx, f, names(forgotten))
		})
	})
	return forgotten, err
}

func (x *Heads) forget(gone func(thread string) bool) ([]heads.Ended, error) {
	data, err := x.readLog(historyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	last := map[string]heads.Ended{}
	var order []string
	var kept []byte
	for line := range bytes.Lines(data) {
		e, err := parseEnded(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil || !gone(e.Thread) {
			kept = append(kept, line...)
			continue
		}
		if _, known := last[e.Thread]; !known {
			order = append(order, e.Thread)
		}
		last[e.Thread] = e
	}
	if len(order) == 0 {
		return nil, nil
	}
	forgotten := make([]heads.Ended, len(order))
	for i, thread := range order {
		forgotten[i] = last[thread]
	}
	return forgotten, durable.WriteFile(x.fsys, x.path(historyFile), kept, 0o644)
}

// names are the threads of lines.
func names(lines []heads.Ended) map[string]bool {
	threads := map[string]bool{}
	for _, e := range lines {
		threads[e.Thread] = true
	}
	return threads
}
