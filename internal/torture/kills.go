package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// kills ends commands, and with them now and then their agents, at random
// moments.
func kills(ctx context.Context, t *trial) error {
	var s *stage
	killed := 0
	for t.time(ctx) {
		var err error
		if s, err = t.stage(ctx, s); err != nil {
			return err
		}
		all := subjects()
		sub := all[t.random.IntN(len(all))]
		args, err := sub.prepare(ctx, s)
		if err != nil {
			return err
		}
		// A step takes tens of milliseconds; the square favours early moments,
		// where most of the writing is.
		after := time.Duration(t.random.Float64() * t.random.Float64() * float64(150*time.Millisecond))
		e, hit, err := s.killed(ctx, after, args)
		if err != nil {
			return err
		}
		if hit {
			killed++
		}
		s.promise.heard(e.Stdout)
		if err := s.check(ctx); err != nil {
			return fmt.Errorf("%s, killed after %s: %w\nafter: %s", sub.name, after, err, e)
		}
		t.rounds++
	}
	t.note("%d commands, %d of them killed before they ended", t.rounds, killed)
	return nil
}

// killed starts a command and kills it after a while, unless it has ended by
// then. Its agent, if it has one, lives on.
func (s *stage) killed(ctx context.Context, after time.Duration, args []string) (ended, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	e, err := s.run(ctx, (*exec.Cmd).Run, args)
	if err == nil {
		err = e.sane()
	}
	return e, e.Signal != "", err
}
