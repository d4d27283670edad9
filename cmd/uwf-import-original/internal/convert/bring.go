// Package convert copies an original's data into a home of uwf: nodes under their existing hashes, the
// registry, the threads, the history, the config. It only adds, so it can be repeated at any time, even after
// an interruption or after the original was used again.
package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/source"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
)

// Options configures an import.
type Options struct {
	Dirs   home.Dirs
	DryRun bool // only report what would be done
	Env    env.Env
}

// Count counts the results for one kind of objects.
type Count struct {
	Imported int `json:"brought"` // or would be imported, in a dry run
	Present  int `json:"present"` // existed already
	Failed   int `json:"failed"`
}

// Report is the result of an import.
type Report struct {
	Ocas      string `json:"ocas"` // the original's directories
	Uwf       string `json:"uwf"`
	Home      string `json:"home"` // uwf's directories
	Store     string `json:"store"`
	DryRun    bool   `json:"dryRun"`
	Nodes     Count  `json:"nodes"`
	Workflows Count  `json:"workflows"`
	Threads   Count  `json:"threads"`
	Config    Count  `json:"config"` // config.yaml and .env
	// Problems lists what could not be imported, at least not completely.
	Problems []source.Problem `json:"problems"`
	// Notes lists differences that lose nothing.
	Notes []source.Problem `json:"notes"`
}

// Complete reports whether everything was imported.
func (r Report) Complete() bool { return len(r.Problems) == 0 }

// Run imports everything. It fails with code invalid if the home or store is unsuitable, or with an I/O
// error. Data imported before an error stays and is complete.
func Run(ctx context.Context, s *source.Source, o Options) (_ Report, err error) {
	b := &importer{
		source: s, options: o, fs: durable.OS(), index: fileheads.Open(o.Dirs.Home, durable.OS()),
		report: Report{
			Ocas: s.Store, Uwf: s.Home, Home: o.Dirs.Home, Store: o.Dirs.Store, DryRun: o.DryRun,
			Problems: append([]source.Problem{}, s.Problems...), Notes: []source.Problem{},
		},
	}
	if err := b.open(ctx); err != nil {
		return b.report, err
	}
	if !o.DryRun { // which puts nothing; the lock creates a store that doesn't exist
		// Protect nodes without references from garbage collection.
		release, failed := cas.LockShared(ctx, b.store)
		if failed != nil {
			return b.report, failed
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	for _, part := range []func(context.Context) error{b.workflows, b.threads, b.config} {
		if err := part(ctx); err != nil {
			return b.report, err
		}
	}
	return b.report, nil
}

type importer struct {
	source  *source.Source
	options Options
	fs      durable.FS
	store   *fsstore.Store
	index   *fileheads.Heads
	copy    *copier
	report  Report
}

// open opens the store, which must use the original's hash function.
func (b *importer) open(ctx context.Context) error {
	for _, same := range []struct{ ours, theirs, flag string }{
		{b.options.Dirs.Home, b.source.Home, "--home"}, {b.options.Dirs.Store, b.source.Store, "--ocas-home"},
	} {
		if isSame(same.ours, same.theirs) {
			return &protocol.Error{
				Code:    protocol.CodeUsage,
				Message: fmt.Sprintf("%s belongs to the original, which is never changed", same.theirs),
				Hints:   []string{"to import into another directory: " + same.flag + " DIR"},
			}
		}
	}
	var err error
	b.store, err = fsstore.Open(ctx, b.options.Dirs.Store, fsstore.Options{Home: b.options.Dirs.Home, Hash: cas.XXH64})
	if err != nil {
		return err
	}
	if b.store.Algorithm() != cas.XXH64 || b.store.Originals() {
		return &protocol.Error{
			Code: protocol.CodeInvalid,
			Message: fmt.Sprintf("the store %s has %s hashes, but the original's data needs xxh64",
				b.store.Dir(), b.store.Algorithm()),
			Hints: []string{"to import into a new home: --home DIR"},
		}
	}
	if !b.options.DryRun {
		if err := b.store.Make(ctx, b.options.Env.Now().UnixMilli()); err != nil {
			return err
		}
	}
	b.copy = newCopier(b.source.Nodes, b.store, b.options.DryRun, &b.report.Nodes)
	return nil
}

func isSame(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func (b *importer) problem(what, name, format string, args ...any) {
	b.report.Problems = append(b.report.Problems, source.Problem{What: what, Name: name, Reason: fmt.Sprintf(format, args...)})
}

func (b *importer) note(what, name, format string, args ...any) {
	b.report.Notes = append(b.report.Notes, source.Problem{What: what, Name: name, Reason: fmt.Sprintf(format, args...)})
}

// isOfNode reports whether an error concerns stored data rather than the machine.
func isOfNode(err error) bool {
	var (
		corrupt *cas.CorruptError
		kind    *cas.TypeError
		schema  *cas.SchemaError
	)
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &corrupt) || errors.As(err, &kind) || errors.As(err, &schema) ||
		errors.Is(err, fs.ErrPermission)
}

func (b *importer) now() time.Time { return b.options.Env.Now() }
