package threaddiff

import (
	"context"
	"iter"

	"github.com/united-workforce/uwf/cas/thread"
)

// pull reads the steps of a thread one by one, newest first; nil behind the last.
func pull(ctx context.Context, t *thread.Thread) (next func() (*thread.Step, error), stop func()) {
	read, stop := iter.Pull2(t.Steps(ctx))
	return func() (*thread.Step, error) {
		s, err, ok := read()
		if !ok || err != nil {
			return nil, err
		}
		return &s, nil
	}, stop
}

// step is the ith step of the tail with what it delivered, nil behind its end.
func (s *side) step(ctx context.Context, i int) (*delivered, error) {
	if i >= len(s.tail) {
		return nil, nil
	}
	d := &delivered{Step: s.tail[i]}
	out, err := s.Shown(ctx, d.Step)
	if err != nil {
		return nil, err
	}
	d.output = out.Value
	d.answer, err = thread.Content(ctx, s.r, d.Detail)
	return d, err
}

type delivered struct {
	thread.Step
	output any
	answer string
}

func pairOf(ctx context.Context, a, b *side, i, number int) (Pair, error) {
	p := Pair{Number: number}
	for _, s := range []struct {
		side *side
		into **Brief
	}{{a, &p.Old}, {b, &p.New}} {
		if i >= len(s.side.tail) {
			continue
		}
		step := s.side.tail[i]
		out, err := s.side.Shown(ctx, step)
		if err != nil {
			return p, err
		}
		*s.into = &Brief{Hash: step.Hash, Role: step.Role, Output: out.Value}
	}
	return p, nil
}
