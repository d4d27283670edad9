package main

import (
	"context"
	"fmt"
)

// stage is a world with a thread that has some steps, on which the subjects run one after another.
type stage struct {
	*world
	promise       promise
	base          string // a thread that every check steps
	subjectThread string // the thread of the current command, or ""
	rounds        int
	importHome    string // the last home for imports, or ""
}

// roundsPerStage keeps stores and chains small, so that checks cost the same in each round.
const roundsPerStage = 40

// stage returns s, or a fresh one if s has been used enough.
func (t *trial) stage(ctx context.Context, s *stage) (*stage, error) {
	if s != nil && s.rounds < roundsPerStage {
		s.rounds++
		return s, nil
	}
	if s != nil {
		if err := removeAll(s.dir); err != nil {
			return nil, err
		}
	}
	w, err := t.world()
	if err != nil {
		return nil, err
	}
	fresh := &stage{world: w}
	if err := w.must(ctx, nil, "workflow", "put", w.path("loop.yaml")); err != nil {
		return nil, err
	}
	if fresh.base, err = w.startedOn(ctx, "another task"); err != nil {
		return nil, err
	}
	fresh.promise.add(fresh.base, "")
	return fresh, fresh.stepAgain(ctx, &fresh.promise, fresh.base)
}

// check checks the guarantees for the subject thread, the base thread, and the store. At least one thread has
// to continue.
func (s *stage) check(ctx context.Context) error {
	if s.subjectThread != "" && s.subjectThread != s.base {
		if err := s.standing(ctx, s.subjectThread); err != nil {
			return err
		}
		if err := s.kept(ctx, &s.promise, s.base); err != nil {
			return err
		}
	} else if err := s.goesOn(ctx, &s.promise, s.base); err != nil {
		return err
	}
	return s.sound(ctx, &s.promise)
}

// standing checks the guarantees for a thread, which may have ended.
func (s *stage) standing(ctx context.Context, id string) error {
	shown, err := s.show(ctx, id)
	if err != nil {
		return err
	}
	switch shown.Status {
	case "cancelled":
		return s.kept(ctx, &s.promise, id)
	case "completed":
		return s.resumed(ctx, id)
	case "corrupt":
		return fmt.Errorf("thread %s is corrupt", id)
	default:
		return s.goesOn(ctx, &s.promise, id)
	}
}

// resumed checks the guarantees for an ended thread. An interrupted resume may have left finished work, which
// a step adopts; without it the step is rejected.
func (s *stage) resumed(ctx context.Context, id string) error {
	e, err := s.stepUnlocked(ctx, id)
	if err != nil {
		return err
	}
	if e.Code != 0 && e.Code != 1 {
		return fmt.Errorf("a step of a thread that has ended: %s", e)
	}
	s.promise.heard(e.Stdout)
	return s.kept(ctx, &s.promise, id)
}
