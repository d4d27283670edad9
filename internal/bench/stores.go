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

// The sizes of what the stores hold.
const (
	smallNodes   = 10_000 // texts of some 250 bytes
	archiveSteps = 3_300  // of three nodes each
	garbageNodes = 5_000
)

// storeRows put the store beside git and SQLite: the same contents, and the same
// promise that what was put survives a power cut.
func (b *bench) storeRows() []row {
	sizes := []int{1_000, 100_000}
	if b.full {
		sizes = append(sizes, 1_000_000)
	}
	const heavy = 5 // rounds of what takes seconds
	ours, db := b.ofFiles, b.ofSQLite
	return []row{
		grows("ocas get", "nodes", 0.05, sizes, func(n int) side { return timed(b.get(n)) }),
		versus("ocas get", timed(b.get(1_000)), 0, "git cat-file", timed(b.gitGet)),
		versus("get", ours(b.texts, "get", string(textHash(0))), 0, "SQLite", db(b.textRows, "get", string(textHash(0)))),
		versus("durable put of 4 nodes", b.putFiles(4), 1, "git hash-object -w, all flushed", b.gitPut(4)),
		versus("durable put of 4 nodes", b.putFiles(4), 0, "SQLite, synchronous=FULL", b.putSQLite(4)),
		versus("durable put of 10,000 nodes", b.putFiles(smallNodes), 0.2, "git hash-object --stdin-paths -w, all flushed", b.gitPut(smallNodes)).atMost(heavy),
		versus("durable put of 10,000 nodes", b.putFiles(smallNodes), 0, "SQLite, one transaction", b.putSQLite(smallNodes)).atMost(heavy),
		versus("walk of a thread of 10,000 nodes", b.archived(b.walk), 0, "git rev-list --objects, as much content", b.inGitArchive("rev-list", "--objects", "main")),
		versus("walk of a thread of 10,000 nodes", b.archived(b.walkFiles), 0, "SQLite", b.archived(b.walkSQLite)),
		versus("ocas fsck of 10,000 nodes", timed(b.fsck), 1, "git fsck, as many loose objects", timed(b.gitFsck)).atMost(2 * heavy),
		versus("ocas fsck of 10,000 nodes", timed(b.fsck), 0, "SQLite: hash and schema of each, integrity_check", db(b.textRows, "verify")).atMost(2 * heavy),
		versus("ocas gc of 5,000 among 15,000", b.archived(b.gc), 0, "git prune, as much content", b.gitPrune).atMost(heavy),
		versus("ocas gc of 5,000 among 15,000", b.archived(b.gc), 0, "SQLite: DELETE what the head does not reach", b.archived(b.collectSQLite)).atMost(heavy),
		versus("thread export of 10,000 nodes", b.archived(b.export), 0, "git bundle create", b.gitExport).atMost(heavy),
		versus("thread export of 10,000 nodes", b.archived(b.export), 0, "SQLite: VACUUM INTO", b.archived(b.exportSQLite)).atMost(heavy),
		versus("thread import of 10,000 nodes", b.archived(b.importBundle), 0, "git fetch of a bundle, all flushed", b.gitImport).atMost(heavy),
		versus("thread import of 10,000 nodes", b.archived(b.importBundle), 0, "SQLite: verify, one INSERT SELECT", b.archived(b.importSQLite)).atMost(heavy),
	}
}

// textHash is the hash of the text with a number, in a store of ours.
func textHash(number int) cas.Hash {
	payload, _ := cas.Encode(sample.Text(number)) // a string has an encoding
	return cas.XXH3.Sum(cas.NewKinds(cas.XXH3).Hash(protocol.KindText), payload)
}

// texts is a store of ours with the small nodes.
func (b *bench) texts(ctx context.Context) (string, error) { return b.filled(ctx, smallNodes) }

// filled is a store of n nodes.
func (b *bench) filled(ctx context.Context, n int) (string, error) {
	return fixture(b, fmt.Sprintf("a store of %d nodes", n), func() (string, error) {
		dir := b.path(fmt.Sprint("store-", n))
		return dir, fill(ctx, dir, n)
	})
}

// ocas runs a command of the store, which no home uses.
func (b *bench) ocas(ctx context.Context, dir string, args ...string) error {
	args = append([]string{"--ocas-home", dir, "cas"}, args...)
	return silent(b.command(ctx, b.path("nobody"), b.program("uwf"), args...))
}

// get reads a node that all stores have.
func (b *bench) get(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		dir, err := b.filled(ctx, n)
		if err != nil {
			return err
		}
		return b.ocas(ctx, dir, "get", string(textHash(0)))
	}
}

func (b *bench) fsck(ctx context.Context) error {
	dir, err := b.texts(ctx)
	if err != nil {
		return err
	}
	return b.ocas(ctx, dir, "fsck")
}

// ofFiles runs the helper on a store of ours.
func (b *bench) ofFiles(store func(context.Context) (string, error), args ...string) side {
	return b.helped("files", store, args...)
}

// ofSQLite runs the helper on a database.
func (b *bench) ofSQLite(store func(context.Context) (string, error), args ...string) side {
	return b.helped("sqlite", store, args...)
}

func (b *bench) helped(helper string, store func(context.Context) (string, error), args ...string) side {
	return func(ctx context.Context) (float64, error) {
		program, err := b.helper(ctx, helper)
		if err != nil {
			return 0, err
		}
		at, err := store(ctx)
		if err != nil {
			return 0, err
		}
		return timed(func(ctx context.Context) error {
			return silent(exec.CommandContext(ctx, program, append([]string{at}, args...)...))
		})(ctx)
	}
}

// putFiles puts n nodes that are nowhere yet; bulk goes into a store of its own.
func (b *bench) putFiles(n int) side {
	return func(ctx context.Context) (float64, error) {
		store := b.texts
		if n == smallNodes {
			store = b.newStore
		}
		return b.ofFiles(store, "put", fmt.Sprint(n), fmt.Sprint(b.unseen(n)))(ctx)
	}
}

func (b *bench) putSQLite(n int) side {
	return func(ctx context.Context) (float64, error) {
		store := b.textRows
		if n == smallNodes {
			store = b.newRows
		}
		return b.ofSQLite(store, "put", fmt.Sprint(n), fmt.Sprint(b.unseen(n)))(ctx)
	}
}

// unseen is the number of the first of n texts that no store has.
func (b *bench) unseen(n int) int { return 10_000_000 + b.fresh(n) }

// newStore is a store of ours with nothing but its beginning in it.
func (b *bench) newStore(ctx context.Context) (string, error) {
	dir := b.path(fmt.Sprint("new-store-", b.fresh(1)))
	return dir, fill(ctx, dir, 1)
}

// textRows is a database with the small nodes.
func (b *bench) textRows(ctx context.Context) (string, error) {
	return fixture(b, "a database of texts", func() (string, error) {
		dir, err := b.texts(ctx)
		if err != nil {
			return "", err
		}
		return b.copied(ctx, "texts.db", dir)
	})
}

// newRows is a database with nothing in it but its table.
func (b *bench) newRows(ctx context.Context) (string, error) {
	dir, err := b.newStore(ctx)
	if err != nil {
		return "", err
	}
	return b.copied(ctx, fmt.Sprint("new-", b.fresh(1), ".db"), dir)
}

// copied makes a database of a store of ours.
func (b *bench) copied(ctx context.Context, name, dir string) (string, error) {
	program, err := b.helper(ctx, "sqlite")
	if err != nil {
		return "", err
	}
	return b.path(name), silent(exec.CommandContext(ctx, program, b.path(name), "copy", dir))
}

func storeOf(p place) string { return filepath.Join(p.home, "cas") }
