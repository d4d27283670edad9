package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/util/env"
)

// inNamespace makes a command start where it may mount without changing what
// others see.
func inNamespace(cmd *exec.Cmd) bool {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	return true
}

// onSmallDisk is the command that runs in the namespace: its arguments are the
// programs' directory, one to mount on, a seed and a time. It prints the rounds.
func onSmallDisk(ctx context.Context, e env.Env) int {
	seed, err := strconv.ParseUint(e.Args[2], 10, 64)
	if err != nil {
		fmt.Fprintln(e.Stderr, err)
		return 2
	}
	budget, err := time.ParseDuration(e.Args[3])
	if err != nil {
		fmt.Fprintln(e.Stderr, err)
		return 2
	}
	mount := filepath.Join(e.Args[1], "small")
	if err := os.MkdirAll(mount, 0o755); err != nil {
		fmt.Fprintln(e.Stderr, err)
		return 1
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=2m"); err != nil {
		fmt.Fprintln(e.Stderr, "mount:", err)
		return noMount
	}
	t := newTrial(tools{bin: e.Args[0], self: e.Exe, env: e}, mount, seed, budget)
	for t.rounds == 0 || t.time(ctx) {
		if err := t.smallRound(ctx, mount); err != nil {
			fmt.Fprintln(e.Stderr, err)
			return 1
		}
		t.rounds++
	}
	fmt.Fprintln(e.Stdout, t.rounds)
	return 0
}

// smallRound fills the disk at a random place, and makes it read-only.
func (t *trial) smallRound(ctx context.Context, mount string) error {
	s, err := t.stage(ctx, nil)
	if err != nil {
		return err
	}
	if err := t.fill(ctx, s); err != nil {
		return fmt.Errorf("a full disk: %w", err)
	}
	if err := syscall.Mount("", mount, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=2m"); err != nil {
		return fmt.Errorf("make it read-only: %w", err)
	}
	err = t.readOnly(ctx, s)
	if back := syscall.Mount("", mount, "", syscall.MS_REMOUNT, "size=2m"); back != nil {
		return fmt.Errorf("make it writable: %w", back)
	}
	if err != nil {
		return fmt.Errorf("a read-only disk: %w", err)
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	return t.away(s.world)
}

// fill leaves a few kilobytes, steps until they are used up, and then makes room.
func (t *trial) fill(ctx context.Context, s *stage) error {
	ballast := s.path("ballast")
	left := t.random.IntN(100 << 10)
	if err := writeUntilFull(ballast, int64(left)); err != nil {
		return err
	}
	for range 100 {
		e, err := s.uwf(ctx, s.stepArgs(s.base)...)
		if err != nil {
			return err
		}
		s.promise.heard(e.Stdout)
		if e.Code == 0 {
			continue
		}
		if !strings.Contains(e.Stderr, "no space left") {
			return fmt.Errorf("the error does not say why: %s", e)
		}
		if err := s.must(ctx, nil, "thread", "show", s.base); err != nil {
			return err
		}
		if err := os.Remove(ballast); err != nil {
			return err
		}
		return s.check(ctx)
	}
	return fmt.Errorf("100 steps fit into %d bytes", left)
}

// writeUntilFull writes a file that leaves so many bytes.
func writeUntilFull(path string, left int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size, page := int64(0), make([]byte, 4096)
	for {
		n, err := f.Write(page)
		size += int64(n)
		if err != nil {
			return f.Truncate(max(0, size-left))
		}
	}
}

// readOnly holds that reading works, and that writing says what is wrong.
func (t *trial) readOnly(ctx context.Context, s *stage) error {
	for _, args := range [][]string{
		{"thread", "list"}, {"thread", "show", s.base}, {"thread", "read", s.base}, {"thread", "steps", s.base}, {"cas", "fsck"},
	} {
		if err := s.must(ctx, nil, args...); err != nil {
			return err
		}
	}
	for _, args := range [][]string{s.stepArgs(s.base), {"thread", "start", "loop", "-p", "x", "--cwd", s.dir}, {"thread", "kill", s.base}} {
		e, err := s.uwf(ctx, args...)
		if err != nil {
			return err
		}
		if e.Code == 0 || !strings.Contains(e.Stderr, "read-only") {
			return fmt.Errorf("should say that it cannot write: %s", e)
		}
	}
	return nil
}
