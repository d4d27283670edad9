package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// Checks of commands' acknowledgements against the actual state.

func (s *stage) timeout() string { return fmt.Sprintf("%dm", 10+s.rounds) }

func hasTimeout(ctx context.Context, s *stage, _ ended) error {
	var got struct{ Value string }
	if err := s.must(ctx, &got, "config", "get", "timeout", "--format", "json"); err != nil {
		return err
	}
	if got.Value != s.timeout() {
		return fmt.Errorf("lost: the timeout is %s, and was set to %s", got.Value, s.timeout())
	}
	return nil
}

func isCancelled(ctx context.Context, s *stage, _ ended) error {
	shown, err := s.show(ctx, s.subjectThread)
	if err == nil && shown.Status != "cancelled" {
		return fmt.Errorf("lost: thread %s is %s", s.subjectThread, shown.Status)
	}
	return err
}

// shownBy checks that a command can show what another one has made.
func shownBy(command ...string) func(context.Context, *stage, ended) error {
	return func(ctx context.Context, s *stage, said ended) error {
		var made struct{ Hash string }
		if err := json.Unmarshal(said.Stdout, &made); err != nil {
			return fmt.Errorf("not JSON (%w): %s", err, said)
		}
		return s.must(ctx, nil, append(command, made.Hash)...)
	}
}

func hasBundle(ctx context.Context, s *stage, _ ended) error {
	return s.must(ctx, nil, "verify", s.path("one.uwfb"))
}

func hasImported(ctx context.Context, s *stage, said ended) error {
	var all []struct{ Thread string }
	if err := s.must(ctx, &all, "thread", "list", "--all", "--home", s.importHome, "--format", "json"); err != nil {
		return err
	}
	if len(all) < len(s.promise.threads()) {
		return fmt.Errorf("lost: %d of %d threads are there: %s", len(all), len(s.promise.threads()), said)
	}
	return s.must(ctx, nil, "cas", "fsck", "--home", s.importHome)
}

func hasSeal(ctx context.Context, s *stage, said ended) error {
	var out struct{ Head, Seal string }
	if err := json.Unmarshal(said.Stdout, &out); err != nil {
		return fmt.Errorf("not JSON (%w): %s", err, said)
	}
	var report struct{ Seals int }
	if err := s.must(ctx, &report, "cas", "fsck", "--format", "json"); err != nil {
		return err
	}
	if report.Seals == 0 {
		return fmt.Errorf("lost: no seal is kept: %s", said)
	}
	return nil
}

func isRedacted(ctx context.Context, s *stage, said ended) error {
	e, err := s.uwf(ctx, "cas", "get", said.Args[4])
	if err == nil && !bytes.Contains(append(e.Stdout, e.Stderr...), []byte("redacted")) {
		err = fmt.Errorf("lost: it is still there: %s", e)
	}
	return err
}
