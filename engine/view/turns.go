package view

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

// StepTurns is a finished step with its turns, which [thread.ShownTurn] reads.
type StepTurns struct {
	Step   protocol.Hash
	Number int // from 1
	Role   string
	Turns  []protocol.Hash
	Gone   string // what stands in place of turns that were redacted; "": nothing
}

// Turns yields the finished steps of a thread, oldest first; role "": of all roles.
func Turns(ctx context.Context, s cas.Store, t *thread.Thread, role string) iter.Seq2[StepTurns, error] {
	return func(yield func(StepTurns, error) bool) {
		var steps []thread.Step
		for step, err := range t.Steps(ctx) {
			if err != nil {
				yield(StepTurns{}, err)
				return
			}
			if role == "" || step.Role == role {
				steps = append(steps, step)
			}
		}
		for _, step := range slices.Backward(steps) {
			detail, err := thread.ShownDetail(ctx, s, step.Detail)
			out := StepTurns{Step: step.Hash, Number: step.Index + 1, Role: step.Role, Turns: detail.Turns}
			if detail.Capture == "" { // only a redacted one says nothing of it
				out.Gone = detail.Outcome
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// LiveTurn is a turn of a step in flight.
type LiveTurn struct {
	Turn protocol.Hash
	Step *protocol.Hash // the finished step in which it was first seen; nil: it was announced
}

// Live yields the turns of a step in flight, until it has ended: each once, whether it
// was announced or is first seen in the finished step.
func Live(ctx context.Context, e *engine.Engine, id string, f *status.Flight) iter.Seq2[LiveTurn, error] {
	return func(yield func(LiveTurn, error) bool) {
		told := 0
		for now := f; now != nil && now.Head == f.Head && now.Started.Equal(f.Started); {
			for ; told < len(now.Turns); told++ {
				if !yield(LiveTurn{Turn: now.Turns[told]}, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				yield(LiveTurn{}, context.Cause(ctx))
				return
			case <-time.After(pause):
			}
			var err error
			if now, err = e.Flight(ctx, id); err != nil {
				yield(LiveTurn{}, err)
				return
			}
		}
		step, turns, err := landed(ctx, e, id, f)
		if err != nil {
			yield(LiveTurn{}, err)
			return
		}
		for ; told < len(turns); told++ {
			if !yield(LiveTurn{Turn: turns[told], Step: &step}, nil) {
				return
			}
		}
	}
}

// landed is the step that a flight has become, with its turns; none if it failed.
func landed(ctx context.Context, e *engine.Engine, id string, f *status.Flight) (protocol.Hash, []protocol.Hash, error) {
	head, err := e.Head(ctx, id)
	if err != nil {
		return "", nil, err
	}
	t, err := thread.Open(ctx, e.Store, head)
	if err != nil {
		return "", nil, err
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return "", nil, err
		}
		if s.Index > f.Number-1 {
			continue
		}
		if s.Index < f.Number-1 || s.Hash == f.Head || s.Role != f.Role {
			break // it failed
		}
		detail, err := thread.ShownDetail(ctx, e.Store, s.Detail)
		return s.Hash, detail.Turns, err
	}
	return "", nil, nil
}
