package main

import (
	"context"
	"fmt"
)

// stage is a world with a thread that has some steps, on which the subjects
// play one after the other.
type stage struct {
	*world
	promise       promise
	base          string // a thread that every check steps on
	subjectThread string // the thread that the command is about; "" if it is about none
	rounds        int
	importHome    string // the home that was imported into last; "": none
}

// roundsPerStage keeps stores and chains small, so that a check costs the same
// in each round.
const roundsPerStage = 40

// stage returns s, or a fresh one when s has seen enough.
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

// check holds the promises about the thread in question, the base thread, and
// the store. One of the threads has to go on.
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

// standing holds the promises about a thread, which may have come to an end.
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

// resumed holds the promises about a thread that has come to its end. A resume
// that was interrupted may have left finished work: a step takes it over, and is
// refused if there is none.
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
