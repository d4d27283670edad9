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
		if err := t.away(s.world); err != nil {
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
	if fresh.base, err = w.started(ctx); err != nil {
		return nil, err
	}
	fresh.promise.add(fresh.base, "")
	return fresh, fresh.stepAgain(ctx, &fresh.promise, fresh.base)
}

// check holds the promises about the thread in question, the base thread, and
// the store.
func (s *stage) check(ctx context.Context) error {
	for _, id := range s.touched() {
		var shown struct{ Status string }
		if err := s.must(ctx, &shown, "thread", "show", id, "--format", "json"); err != nil {
			return err
		}
		switch shown.Status {
		case "cancelled", "completed":
			if err := s.kept(ctx, &s.promise, id); err != nil {
				return err
			}
		case "corrupt":
			return fmt.Errorf("thread %s is corrupt", id)
		default:
			if err := s.goesOn(ctx, &s.promise, id); err != nil {
				return err
			}
		}
	}
	return s.sound(ctx, &s.promise)
}

// touched are the threads to look at closely.
func (s *stage) touched() []string {
	if s.subjectThread == "" || s.subjectThread == s.base {
		return []string{s.base}
	}
	return []string{s.subjectThread, s.base}
}

// subject is a command that writes.
type subject struct {
	name string
	// prepare brings about what the command needs and returns its arguments.
	prepare func(ctx context.Context, s *stage) ([]string, error)
}

// subjects are the commands that write, each with its own kind of files.
func subjects() []subject {
	return []subject{
		{"thread step", onThread(func(s *stage, id string) []string { return s.stepArgs(id) })},
		{"thread step -c 2", onThread(func(s *stage, id string) []string { return append(s.stepArgs(id), "-c", "2") })},
		{"thread step --background", onThread(func(s *stage, id string) []string { return append(s.stepArgs(id), "--background") })},
		{"config set", plain(func(s *stage) []string { return []string{"config", "set", "timeout", fmt.Sprintf("%dm", 10+s.rounds)} })},
		{"thread start", plain(func(s *stage) []string {
			return []string{"thread", "start", "loop", "-p", "another task", "--cwd", s.dir}
		})},
		{"thread fork", onThread(func(s *stage, id string) []string { return []string{"thread", "fork", s.promise.last(id)} })},
		{"thread kill", onThread(func(_ *stage, id string) []string { return []string{"thread", "kill", id} })},
		{"workflow put", plain(func(s *stage) []string { return []string{"workflow", "put", s.path("loop.yaml")} })},
		{"cas put-text", plain(func(s *stage) []string { return []string{"cas", "put-text", fmt.Sprintf("text %d", s.rounds)} })},
		{"thread export", onThread(func(s *stage, id string) []string { return []string{"thread", "export", id, "-o", s.path("one.uwfb")} })},
		{"thread import", importing},
		{"thread seal", onThread(func(_ *stage, id string) []string { return []string{"thread", "seal", id} })},
		{"thread redact", redacting},
		{"cas gc", plain(func(*stage) []string { return []string{"cas", "gc", "--grace", "0s"} })},
	}
}

// plain is a command about no thread.
func plain(args func(*stage) []string) func(context.Context, *stage) ([]string, error) {
	return func(_ context.Context, s *stage) ([]string, error) {
		s.subjectThread = ""
		return args(s), nil
	}
}

// onThread is a command about a thread of its own, with one step.
func onThread(args func(*stage, string) []string) func(context.Context, *stage) ([]string, error) {
	return func(ctx context.Context, s *stage) ([]string, error) {
		id, err := s.stepped(ctx)
		if err != nil {
			return nil, err
		}
		return args(s, id), nil
	}
}

// stepped makes the thread that the next command is about, with one step.
func (s *stage) stepped(ctx context.Context) (string, error) {
	id, err := s.started(ctx)
	if err != nil {
		return "", err
	}
	s.promise.add(id, "")
	s.subjectThread = id
	return id, s.stepAgain(ctx, &s.promise, id)
}
