// Package gc deletes unneeded nodes.
//
// A node is needed if it is reachable, through types as well, from a root: the head of an active or ended
// thread; a registered workflow; a reference in the current or last run of a thread; a young node; the
// schemas that every store starts with. Everything else is garbage, except tombstones that were created here,
// which prevent redacted content from coming back.
//
// Collection is safe while threads run, with any grace period. docs/storage.md explains why; in short:
//   - nodes are removed only while no process puts any ([fsstore.Store.LockExclusive]),
//     and the roots are read again during that time;
//   - putting an existing node makes it young again;
//   - while an agent is running, everything put since its step started is young;
//   - a process that puts nodes and references them later locks the store in
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

// DefaultGrace is the default time for which a node is young.
const DefaultGrace = time.Hour

// perRound is the number of files removed before writers get a turn: about one second of work. If there is
// very much garbage, a round removes a quarter of it, because each round rechecks everything.
const perRound = 20_000

// Options configures a collection.
type Options struct {
	// Homes lists all home directories whose threads are in the store. At least one is required, because
	// otherwise nothing would be kept.
	Homes []string
	// Grace is the time for which a node is kept after its last put; 0 means none.
	Grace time.Duration
	// DryRun only counts.
	DryRun bool
	// Damaged continues although a node referenced from a root is missing or damaged, or a thread is lost.
	// Nodes that only it references then are garbage.
	Damaged bool
	Now     func() time.Time
}

// Report is the result of a collection.
type Report struct {
	Nodes     int   `json:"nodes"` // before the collection
	Bytes     int64 `json:"bytes"`
	Reachable int   `json:"reachable"` // from threads, workflows, runs and young nodes
	Young     int   `json:"young"`     // by time alone
	Freed     int   `json:"freed"`     // nodes removed, or to be removed in a dry run
	FreedSize int64 `json:"freedBytes"`
	Seals     int   `json:"seals"`     // removed seals of missing nodes
	Temporary int   `json:"temporary"` // removed files of killed writers
	DryRun    bool  `json:"dryRun"`
}

// DamagedError means that a needed node can't be read, or that threads are lost, so that further references
// are unknown. Nothing was removed.
type DamagedError struct {
	Count int // number of nodes
	First error
}

// Error implements error.
func (e *DamagedError) Error() string {
	if e.Count == 0 {
		return e.First.Error()
	}
	return fmt.Sprintf("%d nodes that threads or workflows need are missing or damaged, such as: %v", e.Count, e.First)
}

// Unwrap returns the first damage.
func (e *DamagedError) Unwrap() error { return e.First }

// Run collects garbage. It returns a [*DamagedError], an error for an unreadable line of an index file, or
// [errors.ErrUnsupported] for a store of the original, whose roots are in a separate database.
func Run(ctx context.Context, s *fsstore.Store, o Options) (Report, error) {
	c := &collection{store: s, options: o, report: Report{DryRun: o.DryRun}}
	switch {
	case s.Originals():
		return c.report, fmt.Errorf("collect garbage in %s: %w: it is a store of the original, which has "+
			"variables that uwf cannot read", s.Dir(), errors.ErrUnsupported)
	case len(o.Homes) == 0:
		return c.report, errors.New("collect garbage: no home directory given, so everything would be deleted")
	}
	if err := c.survey(ctx); err != nil {
		return c.report, err
	}
	if o.DryRun {
		return c.report, c.count(ctx)
	}
	return c.report, c.sweep(ctx)
}

// collection is the state of one run.
type collection struct {
	store   *fsstore.Store
	options Options
	report  Report

	nodes  census.Set // listed at the start; only these are ever removed
	sizes  []int64    // of their files, by ID, when last seen; gone if missing
	marks  *marks
	cutoff time.Time // files newer than this stay
}

// gone is the size of a file removed by another process.
const gone = -1

// survey lists all nodes and marks the needed ones while other processes keep working.
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

// markRoots marks the current roots of the homes, and moves the cutoff to before the start of every step with
// a running agent. It checks the agents before it reads the heads: if a step ends in between, its head has
// already moved.
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
			c.cutoff = time.Time{} // the clock was set back, so file times are unreliable
		case begun.Before(c.cutoff):
			c.cutoff = *begun
		}
	}
	// The roots of the index come first, because damage below them counts.
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

// markYoung marks young nodes that aren't marked yet, and what they reference, and counts them.
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

// count counts what would be removed.
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

// sweepLocks removes lock files that killed processes left for inactive threads. A lock that is held or names
// a running agent stays. The files are small, so errors are ignored.
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
