package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/united-workforce/uwf/util/durable"
)

// rows are the promises, in the order of docs/architecture.md.
func (b *bench) rows() []row {
	show := func(p place) func() error {
		return func() error { _, err := b.output(p, "thread", "show", p.thread); return err }
	}
	return []row{
		{
			name: "thread step, uwf-mock", against: "two empty programs and the same flushes",
			promise: 5.5, subject: func() error { return b.step(b.short) }, anchor: b.twoAndFlushes,
		},
		{
			name: "thread step at 10,000 steps", against: "thread step at 10 steps",
			promise: 1.3, subject: func() error { return b.step(b.long) }, anchor: func() error { return b.step(b.short) },
		},
		{
			name: "thread show", against: "one empty program",
			promise: 7, subject: show(b.short), anchor: b.one,
		},
		{
			name: "thread show at 10,000 steps", against: "thread show at 10 steps",
			promise: 1.3, subject: show(b.long), anchor: show(b.short),
		},
		{
			name: "thread start among 100,000", against: "thread start among 1",
			promise: 4, subject: func() error { return b.start(b.crowded) }, anchor: func() error { return b.start(b.short) },
		},
	}
}

func (b *bench) start(p place) error {
	_, err := b.output(p, "thread", "start", filepath.Join(b.dir, "loop.yaml"), "-p", "task", "--cwd", b.dir)
	return err
}

func (b *bench) one() error { return exec.Command(b.empty).Run() }

// twoAndFlushes is the least that a step can cost: two programs one after the
// other, and the files of a step made durable as the store makes them, in the
// mode that is safe here.
func (b *bench) twoAndFlushes() error {
	for range 2 {
		if err := b.one(); err != nil {
			return err
		}
	}
	mode, _ := durable.SafeMode(b.short.home, b.short.home)
	b.n++
	var files []durable.File
	for i := range 5 { // output, turn, detail, prompt, step
		dir := filepath.Join(b.floor, fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		files = append(files, durable.File{Path: filepath.Join(dir, fmt.Sprint(b.n)), Data: make([]byte, 600), Perm: 0o444})
	}
	if err := durable.WriteAll(durable.OS(), files, mode); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS(), filepath.Join(b.floor, "head"), make([]byte, 60), 0o644)
}
