package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
)

// archive is a thread as a whole: in a home, and in a database.
type archive struct {
	place
	head     string
	database string
}

// archive makes both once. The third is git's, see gitArchive.
func (b *bench) archive(ctx context.Context) (archive, error) {
	return fixture(b, "an archive", func() (a archive, err error) {
		if a.place, err = b.chain(ctx, archiveSteps); err != nil {
			return a, err
		}
		head, err := fileheads.Open(a.home, durable.OS()).Head(ctx, a.thread)
		if err != nil {
			return a, err
		}
		a.head = string(head)
		a.database, err = b.copied(ctx, "archive.db", storeOf(a.place))
		return a, err
	})
}

// archived is a side that does something with the archive.
func (b *bench) archived(do func(context.Context, archive) (float64, error)) side {
	return func(ctx context.Context) (float64, error) {
		a, err := b.archive(ctx)
		if err != nil {
			return 0, err
		}
		return do(ctx, a)
	}
}

func (b *bench) walk(ctx context.Context, a archive) (float64, error) {
	return timed(func(ctx context.Context) error {
		_, err := b.uwf(ctx, a.home, "cas", "walk", a.head)
		return err
	})(ctx)
}

func (b *bench) walkFiles(ctx context.Context, a archive) (float64, error) {
	return b.ofFiles(func(context.Context) (string, error) { return storeOf(a.place), nil }, "walk", a.head)(ctx)
}

// onRows runs the helper on the database of the archive.
func (b *bench) onRows(ctx context.Context, a archive, args ...string) (float64, error) {
	return b.ofSQLite(func(context.Context) (string, error) { return a.database, nil }, args...)(ctx)
}

func (b *bench) walkSQLite(ctx context.Context, a archive) (float64, error) {
	return b.onRows(ctx, a, "walk", a.head)
}

// gc removes garbage that was put just before, unflushed and uncounted.
func (b *bench) gc(ctx context.Context, a archive) (float64, error) {
	if err := fillFrom(ctx, storeOf(a.place), b.unseen(garbageNodes), garbageNodes); err != nil {
		return 0, err
	}
	return timed(func(ctx context.Context) error {
		_, err := b.uwf(ctx, a.home, "cas", "gc", "--grace", "0s")
		return err
	})(ctx)
}

func (b *bench) collectSQLite(ctx context.Context, a archive) (float64, error) {
	if _, err := b.onRows(ctx, a, "put", fmt.Sprint(garbageNodes), fmt.Sprint(b.unseen(garbageNodes))); err != nil {
		return 0, err
	}
	return b.onRows(ctx, a, "collect", a.head)
}

func (b *bench) export(ctx context.Context, a archive) (float64, error) {
	file := b.path(fmt.Sprint("export-", b.fresh(1), ".uwfb"))
	return timed(func(ctx context.Context) error {
		_, err := b.uwf(ctx, a.home, "thread", "export", a.thread, "-o", file)
		return err
	})(ctx)
}

func (b *bench) exportSQLite(ctx context.Context, a archive) (float64, error) {
	file := b.path(fmt.Sprint("export-", b.fresh(1), ".db"))
	return b.onRows(ctx, a, "export", file)
}

// importBundle brings the archive into a home that is new each time.
func (b *bench) importBundle(ctx context.Context, a archive) (float64, error) {
	file, err := fixture(b, "a bundle", func() (string, error) {
		_, err := b.uwf(ctx, a.home, "thread", "export", a.thread, "-o", b.path("archive.uwfb"))
		return b.path("archive.uwfb"), err
	})
	if err != nil {
		return 0, err
	}
	home := b.path(fmt.Sprint("import-", b.fresh(1)))
	return timed(func(ctx context.Context) error {
		_, err := b.uwf(ctx, home, "thread", "import", file)
		return err
	})(ctx)
}

func (b *bench) importSQLite(ctx context.Context, a archive) (float64, error) {
	program, err := b.helper(ctx, "sqlite")
	if err != nil {
		return 0, err
	}
	file, err := fixture(b, "a copy of the database", func() (string, error) {
		path := b.path("archive-export.db")
		return path, silent(exec.CommandContext(ctx, program, a.database, "export", path))
	})
	if err != nil {
		return 0, err
	}
	database := b.path(fmt.Sprint("import-", b.fresh(1), ".db"))
	return timed(func(ctx context.Context) error {
		return silent(exec.CommandContext(ctx, program, database, "import", file))
	})(ctx)
}
