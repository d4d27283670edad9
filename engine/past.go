package engine

import (
	"context"
	"iter"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/moderator"
)

// past reads the steps of a thread for conditions that ask for them.
type past struct {
	thread *thread.Thread
	err    error // why the steps could not be read
}

// steps yields the steps, newest first, reading two nodes each.
func (p *past) steps(ctx context.Context) iter.Seq2[moderator.Past, error] {
	return func(yield func(moderator.Past, error) bool) {
		for s, err := range p.thread.Steps(ctx) {
			var out thread.Output
			if err == nil {
				out, err = p.thread.Output(ctx, s)
			}
			if err != nil {
				p.err = err
				yield(moderator.Past{}, err)
				return
			}
			if !yield(moderator.Past{Role: s.Role, Output: out.Value, Detail: s.Detail, Agent: s.Agent}, nil) {
				return
			}
		}
	}
}
