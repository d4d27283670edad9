package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// kills ends commands at random moments. What a command that has ended by itself has
// made is held with the next one that is killed.
func kills(ctx context.Context, t *trial) error {
	var s *stage
	killed, longest := 0, map[string]time.Duration{}
	for t.time(ctx) {
		var err error
		if s, err = t.stage(ctx, s); err != nil {
			return err
		}
		sub := pick(t, subjects()...)
		args, err := sub.prepare(ctx, s)
		if err != nil {
			return err
		}
		after := time.Duration(t.random.Float64() * float64(cmp.Or(longest[sub.name], time.Second/10)))
		began := t.env.Now()
		e, hit, err := s.killed(ctx, after, args)
		if err != nil {
			return err
		}
		s.promise.heard(e.Stdout)
		t.rounds++
		if !hit {
			longest[sub.name] = t.env.Now().Sub(began)
			continue
		}
		killed++
		longest[sub.name] += longest[sub.name] / 64 // it may take longer than it did
		if err := s.check(ctx); err != nil {
			return fmt.Errorf("%s, killed after %s: %w\nafter: %s", sub.name, after, err, e)
		}
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
