package status

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Due are the active threads that can go on now, oldest first: those that nobody works
// on, that wait for nobody, that are not parked, and that may work here. One that has failed
// waits for a person, since what may be tried again has been, and so does one whose last
// step a person has undone. With an error for entries that cannot be read it returns the
// others.
func (r *Reader) Due(ctx context.Context) ([]string, error) {
	facts, damaged := r.Heads.AllFacts(ctx)
	at := map[string]protocol.Hash{}
	var threads []Listed
	for h, err := range r.Heads.Heads(ctx) {
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		at[h.Thread] = h.Hash
		threads = append(threads, Listed{Thread: h.Thread, Head: h.Hash})
	}
	threads = slices.DeleteFunc(threads, func(l Listed) bool {
		f := facts[l.Thread]
		undone, _ := r.Undone(ctx, f, l.Head) // what cannot be read takes nobody back
		// What a parent that has gone another way had asked for is nobody's need.
		return f.Foreign() || undone != nil || f.Parent != nil && at[f.Parent.Thread] != f.Parent.Head
	})
	var due []string
	for item := range r.Overview().Items(ctx, threads) {
		// One at its end that is active was killed before that was noted, which is its next step.
		if item.Status == protocol.StatusIdle || item.Status == protocol.StatusCompleted {
			due = append(due, item.Thread)
		}
	}
	return due, damaged
}

// Undone is the step that was undone last of a thread at a head, if it has not gone on
// since; nil: there is none.
func (r *Reader) Undone(ctx context.Context, facts heads.Facts, head protocol.Hash) (*thread.Thread, error) {
	if len(facts.Undone) == 0 {
		return nil, nil
	}
	t, err := thread.Open(ctx, r.Nodes(), facts.Undone[0])
	if err != nil {
		return nil, err
	}
	before := t.StartHash
	if t.Last != nil && t.Last.Prev != nil {
		before = *t.Last.Prev
	}
	if t.Last == nil || before != head {
		return nil, nil
	}
	return t, nil
}
