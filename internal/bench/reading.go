package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// readingRows say what it costs to look at threads, however long and however many
// they are.
func (b *bench) readingRows() []row {
	many, heads := []int{10, 1_000, 100_000}, []int{10, 1_000, 10_000}
	if b.full {
		heads = append(heads, 100_000)
	}
	among := func(args ...string) func(n int) side {
		return func(n int) side { return timed(b.on(b.among, n, args...)) }
	}
	show, read := []string{"thread", "show", threadID}, []string{"thread", "read", "--quota", "4000", threadID}
	return []row{
		versus("thread show", timed(b.on(b.chain, 10, show...)), 7, "1 empty program", timed(b.empty)),
		versus("thread show at 10,000 steps", timed(b.on(b.chain, 10_000, show...)), 1.3, "at 10 steps", timed(b.on(b.chain, 10, show...))),
		versus("thread read --quota 4000 at 10,000 steps", timed(b.on(b.chain, 10_000, read...)), 1.3, "at 10 steps", timed(b.on(b.chain, 10, read...))),
		grows("thread show among threads", "threads", 0, many, among(show...)),
		grows("thread read among threads", "threads", 0, many, among(read...)),
		versus("thread start among 100,000", timed(b.startOf(100_000)), 4, "among 1", timed(b.startOf(1))),
		versus("thread list of 10,000", timed(b.on(b.crowd, 10_000, "thread", "list")), 3, "reading their 10,000 heads", timed(b.readHeads(10_000))),
		grows("thread list", "threads", 0, heads, func(n int) side { return timed(b.on(b.crowd, n, "thread", "list")) }),
		versus("workflow validate, 300 lines", timed(b.validate(27)), 0, "of 16 lines", timed(b.validate(1))),
	}
}

// threadID stands for the thread of the fixture in a command.
const threadID = "{thread}"

// on runs uwf in the home of a fixture.
func (b *bench) on(of func(context.Context, int) (place, error), n int, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := of(ctx, n)
		if err != nil {
			return err
		}
		args := slices.Clone(args)
		for i, a := range args {
			args[i] = strings.ReplaceAll(a, threadID, p.thread)
		}
		_, err = b.uwf(ctx, p.home, args...)
		return err
	}
}

// startOf starts a thread among n others.
func (b *bench) startOf(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := b.among(ctx, n)
		if err != nil {
			return err
		}
		_, err = b.start(ctx, p.home)
		return err
	}
}

// readHeads reads the head of each thread with a program that does nothing else.
func (b *bench) readHeads(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := b.crowd(ctx, n)
		if err != nil {
			return err
		}
		files, err := b.helper(ctx, "files")
		if err != nil {
			return err
		}
		return silent(b.command(ctx, p.home, files, filepath.Join(p.home, "cas"), "heads", filepath.Join(p.home, "threads.yaml")))
	}
}

// validate checks a workflow with n roles.
func (b *bench) validate(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		path, err := b.file(fmt.Sprintf("roles-%d.yaml", n), manyRoles(n))
		if err != nil {
			return err
		}
		_, err = b.uwf(ctx, b.path("nobody"), "workflow", "validate", path)
		return err
	}
}
