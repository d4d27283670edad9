package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// disk gives uwf a file system that really gets full, and one that becomes
// read-only while it is in use. It is mounted by a process of its own, in a
// namespace of its own, so that it is gone whatever happens.
func disk(ctx context.Context, t *trial) error {
	cmd := exec.CommandContext(ctx, t.self, smallDisk, t.bin, t.dir, strconv.FormatUint(t.seed, 10), t.until.Sub(t.env.Now()).String())
	cmd.Env = t.env.Environ
	if !inNamespace(cmd) {
		t.note("not here: a file system of our own needs Linux")
		return nil
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() == noMount:
		t.note("not here: %s", strings.TrimSpace(stderr.String()))
		return nil
	case errors.As(err, &exit):
		return errors.New(strings.TrimSpace(stderr.String()))
	default:
		t.note("not here: a namespace of our own: %v", err)
		return nil
	}
	if _, err := fmt.Sscan(stdout.String(), &t.rounds); err != nil {
		return fmt.Errorf("what the namespace printed: %w", err)
	}
	t.note("each round: full in the middle of a step, space again, read-only, writable again")
	return nil
}

// smallDisk is our own command that runs in the namespace.
const smallDisk = "small-disk"

// noMount is its exit status when it may not mount.
const noMount = 77
