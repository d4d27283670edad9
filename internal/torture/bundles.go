package main

import (
	"context"
	"fmt"
	"os"
)

// redacting redacts the detail of a thread's step.
func redacting(ctx context.Context, s *stage) ([]string, error) {
	id, err := s.stepped(ctx)
	if err != nil {
		return nil, err
	}
	var step struct{ Payload struct{ Detail string } }
	if err := s.must(ctx, &step, "cas", "get", s.promise.last(id), "--format", "json"); err != nil {
		return nil, err
	}
	// The mock prints the same in every thread, so they share the node.
	return []string{"thread", "redact", id, "--node", step.Payload.Detail, "--shared", "--reason", "torture"}, nil
}

// importing imports all threads into an empty home. First it checks that the last such home is sound,
// whatever happened to the import there, and that importing again completes it.
func importing(ctx context.Context, s *stage) ([]string, error) {
	s.subjectThread = ""
	file := s.path("all.uwfb")
	if s.importHome != "" {
		if err := s.must(ctx, nil, "thread", "import", file, "--home", s.importHome); err != nil {
			return nil, fmt.Errorf("import again: %w", err)
		}
		if err := s.must(ctx, nil, "cas", "fsck", "--home", s.importHome); err != nil {
			return nil, fmt.Errorf("after an import: %w", err)
		}
		if err := os.RemoveAll(s.importHome); err != nil {
			return nil, err
		}
	}
	if err := s.must(ctx, nil, "thread", "export", "--all", "-o", file); err != nil {
		return nil, err
	}
	s.importHome = s.path(fmt.Sprintf("home-%d", s.rounds))
	return []string{"thread", "import", file, "--home", s.importHome}, nil
}
