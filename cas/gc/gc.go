// Package gc takes away nodes that nobody needs.
//
// Needed is what can be reached, types included, from a root: the head of a
// thread, active or ended; a registered workflow; what the run of a step names,
// in flight or the last one; a node that is young; the schemas that every store
// begins with. Everything else is garbage, but tombstones that were made here: they
// keep away what was redacted.
//
// It is safe while threads run, whatever the grace period. The argument is in
// docs/storage.md; in short:
//   - nodes are removed only while nobody is putting any ([fsstore.Store.Alone]),
//     and in that time the roots are read again;
//   - a put of a node that is there makes it young again;
//   - while an agent is alive, what has been put since its step began is young;
//   - whoever puts nodes first and names them a moment later, holds the store in
//     between ([cas.LockShared]).
package gc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/threadid"
)

// DefaultGrace is how long a node is young, if nobody says otherwise.
const DefaultGrace = time.Hour

// perRound is how many files are removed before writers get their turn: about a
// second's work. Where there is very much to remove it is a quarter of that, because
// each round looks at everything again.
const perRound = 20_000

// Options of a collection.
type Options struct {
	// Homes are all home directories whose threads live in the store. There
	// must be one, or nothing would be kept.
	Homes []string
	// Grace is how long a node is kept after it was put last; 0: not at all.
	Grace time.Duration
	// DryRun only counts.
	DryRun bool
	// Damaged goes on although a node that a root leads to is missing or
	// damaged, or a thread is lost. Nodes that only it refers to are garbage then.
	Damaged bool
	Now     func() time.Time
}

// Report says what a collection found and did.
type Report struct {
	Nodes     int   `json:"nodes"` // before
	Bytes     int64 `json:"bytes"`
	Reachable int   `json:"reachable"` // from threads, workflows, runs and young nodes
	Young     int   `json:"young"`     // among the nodes, by time alone
	Freed     int   `json:"freed"`     // nodes; what would be, in a dry run
	FreedSize int64 `json:"freedBytes"`
	Seals     int   `json:"seals"`     // removed, of nodes that are gone
	Temporary int   `json:"temporary"` // files that killed writers had left
	DryRun    bool  `json:"dryRun"`
}

// DamagedError means that a node in use cannot be read, or that threads are lost, so further
// references are unknown. Nothing was removed.
type DamagedError struct {
	Count int // of nodes
	First error
}

// Error implements error.
func (e *DamagedError) Error() string {
	if e.Count == 0 {
		return e.First.Error()
	}
	return fmt.Sprintf("%d nodes that threads or workflows need are missing or damaged; the first: %v", e.Count, e.First)
}

// Unwrap returns the first damage.
func (e *DamagedError) Unwrap() error { return e.First }

// Run collects. Errors: [*DamagedError]; a line of an index file that cannot be
// read; [errors.ErrUnsupported] for a store of the
// original's, whose roots are in a database of its own.
func Run(ctx context.Context, s *fsstore.Store, o Options) (Report, error) {
	c := &collection{store: s, options: o, report: Report{DryRun: o.DryRun}}
	switch {
	case s.Originals():
		return c.report, fmt.Errorf("collect in %s: %w: it is a store of the original's, whose variables only that "+
			"program knows", s.Dir(), errors.ErrUnsupported)
	case len(o.Homes) == 0:
		return c.report, errors.New("collect: no home directory is named, so nothing would be kept")
	}
	if err := c.survey(ctx); err != nil {
		return c.report, err
	}
	if o.DryRun {
		return c.report, c.count(ctx)
	}
	return c.report, c.sweep(ctx)
}

// collection is one run of the collector.
type collection struct {
	store   *fsstore.Store
	options Options
	report  Report

	nodes  census.Set // as listed at the beginning; only these are ever removed
	sizes  []int64    // of their files, by ID, as seen last; gone: there was none any more
	marks  *marks
	cutoff time.Time // what is younger stays
}

// gone stands for the size of a file that somebody else has removed.
const gone = -1

// survey lists all nodes and marks what is needed, while everybody works on.
func (c *collection) survey(ctx context.Context) error {
	var faults []error
	nodes, err := census.List(ctx, c.store, func(err error) { faults = append(faults, err) })
	if err := errors.Join(append(faults, err)...); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	c.nodes, c.marks, c.sizes = nodes, newMarks(c.store, nodes), make([]int64, nodes.Len())
	c.report.Nodes = nodes.Len()
	if err := c.markRoots(ctx); err != nil {
		return err
	}
	young, err := c.markYoung(ctx)
	c.report.Young = young
	for _, size := range c.sizes {
		c.report.Bytes += max(size, 0)
	}
	return err
}

// markRoots marks what the homes name now, and moves the cutoff to before the
// beginning of every step whose agent is alive. The agents are asked before the
// heads are read: a step that ends in between has its head moved by then.
func (c *collection) markRoots(ctx context.Context) error {
	now := c.options.Now()
	c.cutoff = now.Add(-c.options.Grace)
	for _, home := range c.options.Homes {
		if err := fileheads.Open(home, durable.OS()).CheckLost(ctx); err != nil && !c.options.Damaged {
			return &DamagedError{First: err}
		}
		begun, err := oldestRun(home)
		if err != nil {
			return err
		}
		switch {
		case begun == nil:
		case begun.After(now):
			c.cutoff = time.Time{} // the clock was set back since: no file's time says whether it is older
		case begun.Before(c.cutoff):
			c.cutoff = *begun
		}
	}
	// Those of the index first: what is damaged below them counts.
	for _, home := range c.options.Homes {
		if err := c.markAll(ctx, indexRoots(ctx, home), true); err != nil {
			return err
		}
	}
	for _, home := range c.options.Homes {
		if err := c.markAll(ctx, runRoots(ctx, home), false); err != nil {
			return err
		}
	}
	if err := c.marks.foundation(ctx); err != nil {
		return err
	}
	if d := c.marks.damage; d.Count > 0 && !c.options.Damaged {
		return &d
	}
	return nil
}

func (c *collection) markAll(ctx context.Context, roots iter.Seq2[protocol.Hash, error], known bool) error {
	for h, err := range roots {
		if err != nil {
			return fmt.Errorf("roots: %w", err)
		}
		if err := c.marks.from(ctx, h, known); err != nil {
			return err
		}
	}
	return nil
}

// markYoung marks the young among the nodes that are not marked yet, and what
// they lead to, and counts them.
func (c *collection) markYoung(ctx context.Context) (young int, err error) {
	for id := range c.nodes.Len() {
		if err := ctx.Err(); err != nil {
			return young, err
		}
		n, at, err := c.store.Stat(c.nodes.Hash(census.ID(id)))
		if errors.Is(err, fs.ErrNotExist) {
			c.sizes[id] = gone
			continue
		}
		if err != nil {
			return young, err
		}
		c.sizes[id] = n
		if at.Before(c.cutoff) {
			continue
		}
		young++
		if err := c.marks.from(ctx, c.nodes.Hash(census.ID(id)), false); err != nil {
			return young, err
		}
	}
	return young, nil
}

// count says what would be removed.
func (c *collection) count(ctx context.Context) error {
	for id := range c.marks.unmarked() {
		if c.sizes[id] == gone {
			continue
		}
		keep, err := c.isRedactedHere(ctx, id)
		if err != nil {
			return err
		}
		if keep {
			c.marks.set(c.nodes.Hash(id))
			continue
		}
		c.report.Freed++
		c.report.FreedSize += c.sizes[id]
	}
	c.report.Reachable = c.report.Nodes - c.report.Freed
	if err := c.deadSeals(ctx, func(cas.Hash) error { c.report.Seals++; return nil }); err != nil {
		return err
	}
	for stray, err := range c.store.Strays(ctx) {
		if err != nil {
			return err
		}
		if stray.Hash == "" && stray.At.Before(c.cutoff) {
			c.report.Temporary++
		}
	}
	return nil
}

// sweepLocks removes lock files that killed processes left for threads that are not active.
// A lock that is held or that names a living agent stays. The files are small, so errors
// are ignored.
func sweepLocks(ctx context.Context, home string) {
	active := map[string]bool{}
	for h, err := range fileheads.Open(home, durable.OS()).Heads(ctx) {
		if err != nil {
			return
		}
		active[h.Thread] = true
	}
	locks, _ := filepath.Glob(filepath.Join(home, "locks", "*.lock"))
	for _, path := range locks {
		thread := strings.TrimSuffix(filepath.Base(path), ".lock")
		if ctx.Err() != nil || active[thread] || !threadid.Valid(thread) {
			continue
		}
		if who, err := durable.ReadHolder(path); err == nil && proc.Lives(who.Child, who.Birth) {
			continue
		}
		if held, err := durable.TryLock(path); err == nil {
			_ = held.RemoveAndUnlock()
		}
	}
}
