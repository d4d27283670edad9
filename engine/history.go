package engine

import (
	"context"
	"iter"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/moderator"
)

// history reads the steps of a thread for conditions that ask for them.
type history struct {
	thread *thread.Thread
	err    error // why the steps could not be read
}

// steps yields the steps, newest first, reading two nodes each.
func (h *history) steps(ctx context.Context) iter.Seq2[moderator.HistoryStep, error] {
	return func(yield func(moderator.HistoryStep, error) bool) {
		for s, err := range h.thread.Steps(ctx) {
			var out thread.Output
			if err == nil {
				out, err = h.thread.Output(ctx, s)
			}
			if err != nil {
				h.err = err
				yield(moderator.HistoryStep{}, err)
				return
			}
			if !yield(moderator.HistoryStep{Role: s.Role, Output: out.Value, Detail: s.Detail, Agent: s.Agent}, nil) {
				return
			}
		}
	}
}
