package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// readingRows say what it costs to look at threads, however long and however many
// they are.
func (b *bench) readingRows() []row {
	show, read := []string{"thread", "show", threadID}, []string{"thread", "read", "--quota", "4000", threadID}
	return []row{
		versus("thread show", timed(b.on(b.chain, 10, show...)), 7, "1 empty program", timed(b.empty)),
		versus("thread show at 10,000 steps", timed(b.on(b.chain, 10_000, show...)), 1.3, "at 10 steps", timed(b.on(b.chain, 10, show...))),
		versus("thread read --quota 4000 at 10,000 steps", timed(b.on(b.chain, 10_000, read...)), 1.3, "at 10 steps", timed(b.on(b.chain, 10, read...))),
		versus("thread start among 100,000", timed(b.startOf(100_000)), 4, "among 1", timed(b.startOf(1))),
		versus("thread list of 10,000", timed(b.on(b.crowd, 10_000, "thread", "list")), 3, "reading their 10,000 heads", timed(b.readHeads(10_000))),
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
		heads, err := b.helper(ctx, "heads")
		if err != nil {
			return err
		}
		return silent(b.command(ctx, p.home, heads, filepath.Join(p.home, "cas"), filepath.Join(p.home, "threads.yaml")))
	}
}
