package cli

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
)

// livePause is how often a running step is looked at.
const livePause = 200 * time.Millisecond

// flight prints the step in flight; live: until it has ended. Its turns are told
// once each, whether they were announced or are first seen in the finished step.
func (p *turnPrinter) flight(ctx context.Context, e *engine.Engine, r reader, f *engine.Flight, live bool) error {
	if err := p.text("\n## %s … (running, %s so far)\n", f.Role, turnCount(len(f.Turns))); err != nil {
		return err
	}
	line := turnLine{Number: f.Number, Role: f.Role, Running: true}
	told := 0
	for now := f; now != nil && now.Head == f.Head && now.Started.Equal(f.Started); {
		for ; told < len(now.Turns); told++ {
			if err := p.turn(ctx, r, line, now.Turns[told]); err != nil {
				return err
			}
		}
		if !live {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(livePause):
		}
		var err error
		if now, err = e.Flight(ctx, r.id); err != nil {
			return err
		}
	}
	return p.rest(ctx, e, r, f, told)
}

// rest prints the turns of the step in flight, now that it has ended, that were
// not announced.
func (p *turnPrinter) rest(ctx context.Context, e *engine.Engine, r reader, f *engine.Flight, told int) error {
	head, err := e.Head(ctx, r.id)
	if err != nil {
		return err
	}
	t, err := thread.Open(ctx, r.store, head)
	if err != nil {
		return err
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return err
		}
		if s.Index > f.Number-1 {
			continue
		}
		if s.Index < f.Number-1 || s.Hash == f.Head || s.Role != f.Role {
			return nil // it failed
		}
		detail, err := thread.ShownDetail(ctx, r.store, s.Detail)
		if err != nil {
			return err
		}
		for ; told < len(detail.Turns); told++ {
			if err := p.turn(ctx, r, turnLine{Step: &s.Hash, Number: f.Number, Role: f.Role}, detail.Turns[told]); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}
