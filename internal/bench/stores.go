package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/internal/bench/sample"
	"github.com/united-workforce/uwf/protocol"
)

// smallNodes is how many texts of some 250 bytes are many.
const smallNodes = 10_000

// storeRows hold that reading a node costs the same however many there are, and
// that writing and checking nodes is no dearer than in git, which makes the same
// promise about power cuts. What goes through a whole thread grows with it.
func (b *bench) storeRows() []row {
	sizes, lengths := []int{1_000, 100_000}, []int{100, 3_000}
	if b.full {
		sizes = append(sizes, 1_000_000)
	}
	const heavy = 5 // rounds of what takes seconds
	return []row{
		grows("ocas get", "nodes", 0.05, sizes, func(n int) side { return timed(b.get(n)) }),
		versus("durable put of 4 nodes", b.putFiles(4), 1, "git hash-object -w, all flushed", b.gitPut(4)),
		versus("durable put of 10,000 nodes", b.putFiles(smallNodes), 0.2, "git hash-object --stdin-paths -w, all flushed", b.gitPut(smallNodes)).atMost(heavy),
		versus("ocas fsck of 10,000 nodes", timed(b.fsck), 1, "git fsck, as many loose objects", timed(b.gitFsck)).atMost(2 * heavy),
		grows("ocas gc of 5,000 nodes", "steps", 0, lengths, b.gc).atMost(heavy),
		grows("thread export", "steps", 0, lengths, func(n int) side {
			return timed(func(ctx context.Context) error { _, err := b.export(ctx, n); return err })
		}).atMost(heavy),
		grows("thread import", "steps", 0, lengths, b.importBundle).atMost(heavy),
	}
}

// textHash is the hash of the text with a number, in a store of ours.
func textHash(number int) cas.Hash {
	payload, _ := cas.Encode(sample.Text(number)) // a string has an encoding
	return cas.XXH3.Sum(cas.NewKinds(cas.XXH3).Hash(protocol.KindText), payload)
}

// filled is a store of n nodes.
func (b *bench) filled(ctx context.Context, n int) (string, error) {
	return fixture(b, fmt.Sprintf("a store of %d nodes", n), func() (string, error) {
		dir := b.path(fmt.Sprint("store-", n))
		return dir, fill(ctx, dir, 0, n)
	})
}

// ocas runs a command on a store of n nodes, which no home uses.
func (b *bench) ocas(ctx context.Context, n int, args ...string) error {
	dir, err := b.filled(ctx, n)
	if err != nil {
		return err
	}
	args = append([]string{"--ocas-home", dir, "cas"}, args...)
	return silent(b.command(ctx, b.path("nobody"), b.program("uwf"), args...))
}

func (b *bench) get(n int) func(context.Context) error {
	return func(ctx context.Context) error { return b.ocas(ctx, n, "get", string(textHash(0))) }
}

func (b *bench) fsck(ctx context.Context) error { return b.ocas(ctx, smallNodes, "fsck") }

// putFiles puts n nodes that are nowhere yet; bulk goes into a store of its own.
func (b *bench) putFiles(n int) side {
	return func(ctx context.Context) (float64, error) {
		program, err := b.helper(ctx, "files")
		if err != nil {
			return 0, err
		}
		dir, err := b.filled(ctx, smallNodes)
		if n == smallNodes {
			dir = b.path(fmt.Sprint("new-store-", b.fresh(1)))
			err = fill(ctx, dir, 0, 1)
		}
		if err != nil {
			return 0, err
		}
		put := exec.CommandContext(ctx, program, dir, "put", fmt.Sprint(n), fmt.Sprint(b.unseen(n)))
		return timed(func(context.Context) error { return silent(put) })(ctx)
	}
}

// unseen is the number of the first of n texts that no store has.
func (b *bench) unseen(n int) int { return 10_000_000 + b.fresh(n) }

// gc removes garbage that was put just before, unflushed and uncounted, beside a
// thread of n steps.
func (b *bench) gc(n int) side {
	return func(ctx context.Context) (float64, error) {
		const garbage = 5_000
		p, err := b.chain(ctx, n)
		if err != nil {
			return 0, err
		}
		if err := fill(ctx, filepath.Join(p.home, "cas"), b.unseen(garbage), garbage); err != nil {
			return 0, err
		}
		return timed(b.on(b.chain, n, "cas", "gc", "--grace", "0s"))(ctx)
	}
}

// export writes a thread of n steps into a bundle.
func (b *bench) export(ctx context.Context, n int) (file string, err error) {
	file = b.path(fmt.Sprint("export-", b.fresh(1), ".uwfb"))
	return file, b.on(b.chain, n, "thread", "export", "-o", file, threadID)(ctx)
}

// importBundle imports a thread of n steps into a home that is new each time.
func (b *bench) importBundle(n int) side {
	return func(ctx context.Context) (float64, error) {
		file, err := fixture(b, fmt.Sprintf("a bundle of %d steps", n), func() (string, error) { return b.export(ctx, n) })
		if err != nil {
			return 0, err
		}
		home := b.path(fmt.Sprint("import-", b.fresh(1)))
		return timed(func(ctx context.Context) error {
			_, err := b.uwf(ctx, home, "thread", "import", file)
			return err
		})(ctx)
	}
}
