package main

import (
	"context"
	"fmt"
	"os"

	"github.com/united-workforce/uwf/util/durable"
)

// stepRows say what a step costs, and that it costs the same in a long thread and
// in a large store.
func (b *bench) stepRows() []row {
	lengths, nodes := []int{1, 100, 10_000}, []int{1_000, 10_000, 100_000}
	if b.full {
		lengths, nodes = append(lengths, 100_000), append(nodes, 1_000_000)
	}
	step := func(n int) side { return timed(b.stepOf(b.chain, n)) }
	return []row{
		versus("thread step, no-op agent", step(10), 4, "2 empty programs, same flushes", timed(b.floor)),
		versus("step of a command role", timed(b.commandStep), 1.05, "thread step, no-op agent, with an empty program for the agent's start", b.withoutAgent),
		versus("thread step at 10,000 steps", step(10_000), 1.3, "at 10 steps", step(10)),
		grows("thread step in a long thread", "steps", 0.05, lengths, func(n int) side {
			if n == 1 {
				return b.secondStep
			}
			return step(n)
		}),
		grows("thread step in a large store", "nodes", 0.05, nodes, func(n int) side { return timed(b.stepOf(b.amid, n)) }),
	}
}

// stepOf makes a step of the thread of a fixture.
func (b *bench) stepOf(of func(context.Context, int) (place, error), n int) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := of(ctx, n)
		if err != nil {
			return err
		}
		return b.step(ctx, p)
	}
}

// secondStep costs a step of a thread that has one, a new thread each time.
func (b *bench) secondStep(ctx context.Context) (float64, error) {
	p, err := b.chain(ctx, 1)
	if err != nil {
		return 0, err
	}
	if p.thread, err = b.start(ctx, p.home); err != nil {
		return 0, err
	}
	if err := b.step(ctx, p); err != nil {
		return 0, err
	}
	return timed(func(ctx context.Context) error { return b.step(ctx, p) })(ctx)
}

// commandStep makes a step of a role that is a command: the empty program.
func (b *bench) commandStep(ctx context.Context) error {
	p, err := fixture(b, "a thread of commands", func() (place, error) {
		p := place{home: b.path("commands")}
		program, err := b.helper(ctx, "empty")
		if err != nil {
			return p, err
		}
		file, err := b.file("commands.yaml", fmt.Sprintf(commandsYAML, program))
		if err != nil {
			return p, err
		}
		if p.thread, err = b.uwf(ctx, p.home, "thread", "start", file, "-p", "task", "--cwd", b.dir, "--format", "text"); err != nil {
			return p, err
		}
		_, err = b.uwf(ctx, p.home, "thread", "step", p.thread, "-c", "10")
		return p, err
	})
	if err != nil {
		return err
	}
	_, err = b.uwf(ctx, p.home, "thread", "step", p.thread)
	return err
}

// withoutAgent costs a step of an agent, with the start of an empty program in the
// place of the agent's own start.
func (b *bench) withoutAgent(ctx context.Context) (float64, error) {
	step, err := timed(b.stepOf(b.chain, 10))(ctx)
	if err != nil {
		return 0, err
	}
	agent, err := timed(func(ctx context.Context) error { return silent(b.command(ctx, b.dir, b.program("uwf-mock"), "--help")) })(ctx)
	if err != nil {
		return 0, err
	}
	empty, err := timed(b.empty)(ctx)
	return step - agent + empty, err
}

// floor is the least that a step can cost: two programs one after the other, and
// the files of a step made durable as the store makes them, in the mode that is
// safe here.
func (b *bench) floor(ctx context.Context) error {
	for range 2 {
		if err := b.empty(ctx); err != nil {
			return err
		}
	}
	return b.flushes(b.fresh(1))
}

// flushes makes the files of a step durable: four new nodes (output, detail,
// prompt, step) and the file of the heads.
func (b *bench) flushes(number int) error {
	mode, _ := durable.SafeMode(b.dir, b.dir)
	var files []durable.File
	for i := range 4 {
		dir := b.path("floor", fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		files = append(files, durable.File{Path: fmt.Sprint(dir, "/", number), Data: make([]byte, 600), Perm: 0o444})
	}
	if err := durable.WriteAll(durable.OS(), files, mode); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS(), b.path("floor", "head"), make([]byte, 60), 0o644)
}
