package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// subject is a command that writes.
type subject struct {
	name string
	// prepare sets up what the command needs and returns its arguments.
	prepare func(ctx context.Context, s *stage) ([]string, error)
	// holds checks what the command has acknowledged. If it is nil, it acknowledges only steps and threads,
	// which promise checks.
	holds func(ctx context.Context, s *stage, said ended) error
}

// done checks what a command has acknowledged.
func (sub subject) done(ctx context.Context, s *stage, said ended) error {
	if sub.holds == nil {
		return nil
	}
	return sub.holds(ctx, s, said)
}

// subjects lists the commands that write, each with different files.
func subjects() []subject {
	return []subject{
		{"thread step", onThread(func(s *stage, id string) []string { return s.stepArgs(id) }), nil},
		{"thread step -c 2", onThread(func(s *stage, id string) []string { return append(s.stepArgs(id), "-c", "2") }), nil},
		{"thread step --background", onThread(func(s *stage, id string) []string { return append(s.stepArgs(id), "--background") }), nil},
		{"run", plain(func(s *stage) []string {
			return []string{"run", "loop", "-p", finish, "--cwd", s.cwd, "--agent", s.agent, "--format", "json"}
		}), nil},
		{"thread resume", resuming, nil},
		{"thread start", plain(func(s *stage) []string {
			return []string{"thread", "start", "loop", "-p", "another task", "--cwd", s.cwd}
		}), nil},
		{"thread fork", onThread(func(s *stage, id string) []string { return []string{"thread", "fork", s.promise.last(id)} }), nil},
		{"thread kill", onThread(func(_ *stage, id string) []string { return []string{"thread", "kill", id} }), isCancelled},
		{"thread prune", pruning, nil},
		{"workflow put", plain(func(s *stage) []string { return []string{"workflow", "put", s.path("loop.yaml")} }), shownBy("workflow", "show")},
		{"config set", plain(func(s *stage) []string { return []string{"config", "set", "timeout", s.timeout()} }), hasTimeout},
		{"cas put-text", plain(func(s *stage) []string { return []string{"cas", "put-text", fmt.Sprintf("text %d", s.rounds)} }), shownBy("cas", "get")},
		{"thread export", onThread(func(s *stage, id string) []string { return []string{"thread", "export", id, "-o", s.path("one.uwfb")} }), hasBundle},
		{"thread import", importing, hasImported},
		{"thread seal", onThread(func(_ *stage, id string) []string { return []string{"thread", "seal", id} }), hasSeal},
		{"thread redact", redacting, isRedacted},
		{"cas gc", collecting, nil},
	}
}

// plain is a command without a thread.
func plain(args func(*stage) []string) func(context.Context, *stage) ([]string, error) {
	return func(_ context.Context, s *stage) ([]string, error) {
		s.subjectThread = ""
		return args(s), nil
	}
}

// onThread is a command on a new thread with one step.
func onThread(args func(*stage, string) []string) func(context.Context, *stage) ([]string, error) {
	return func(ctx context.Context, s *stage) ([]string, error) {
		id, err := s.stepped(ctx)
		if err != nil {
			return nil, err
		}
		return args(s, id), nil
	}
}

// begun starts the thread for the next command.
func (s *stage) begun(ctx context.Context) (id string, err error) {
	if id, err = s.started(ctx); err == nil {
		s.promise.add(id, "")
		s.subjectThread = id
	}
	return id, err
}

// stepped is like begun, with one step.
func (s *stage) stepped(ctx context.Context) (id string, err error) {
	if id, err = s.begun(ctx); err == nil {
		err = s.stepAgain(ctx, &s.promise, id)
	}
	return id, err
}

// resuming resumes a thread that has ended.
func resuming(ctx context.Context, s *stage) ([]string, error) {
	e, err := s.uwf(ctx, "run", "loop", "-p", finish, "--cwd", s.cwd, "--agent", s.agent, "--format", "json")
	if err != nil {
		return nil, err
	}
	steps := acknowledged(e.Stdout)
	if e.Code != 0 || len(steps) == 0 {
		return nil, fmt.Errorf("should run to the end: %s", e)
	}
	s.promise.heard(e.Stdout)
	s.subjectThread = steps[0].Thread
	return []string{"thread", "resume", s.subjectThread, "-p", "once more", "-c", "1", "--agent", s.agent}, nil
}

// pruning removes the threads that have ended, one of which was ended for this purpose.
func pruning(ctx context.Context, s *stage) ([]string, error) {
	s.subjectThread = ""
	id, err := s.started(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.must(ctx, nil, "thread", "kill", id); err != nil {
		return nil, err
	}
	return []string{"thread", "prune", "--keep-days", "0"}, s.forgetEnded(ctx)
}

// forgetEnded drops the ended threads from the promise.
func (s *stage) forgetEnded(ctx context.Context) error {
	var all []struct{ Thread, Status string }
	if err := s.must(ctx, &all, "thread", "list", "--all", "--format", "json"); err != nil {
		return err
	}
	for _, t := range all {
		if t.Status == "cancelled" || t.Status == "completed" {
			s.promise.forget(t.Thread)
		}
	}
	return nil
}

// collecting removes unreferenced nodes: those of a deleted thread.
func collecting(ctx context.Context, s *stage) ([]string, error) {
	id, err := s.stepped(ctx)
	if err != nil {
		return nil, err
	}
	s.subjectThread = ""
	if err := s.must(ctx, nil, "thread", "kill", id); err != nil {
		return nil, err
	}
	if err := s.forgetEnded(ctx); err != nil {
		return nil, err
	}
	if err := s.must(ctx, nil, "thread", "prune", "--keep-days", "0"); err != nil {
		return nil, err
	}
	return []string{"cas", "gc", "--grace", "0s"}, os.RemoveAll(filepath.Join(s.home, "runs", id))
}
