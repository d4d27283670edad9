// Package gc deletes unneeded nodes.
//
// A node is needed if it is reachable, through types as well, from a root: the head of an active or ended
// thread; a registered workflow; a reference in the current or last run of a thread; a young node; the
// schemas that every store starts with. Everything else is garbage, except tombstones that were created here,
// which prevent redacted content from coming back.
//
// Collection is safe while threads run, with any grace period. docs/storage.md explains why; in short:
//   - nodes are removed only while no process puts any ([cas.Compaction].Finish), and the roots are read again
//     during that time;
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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/threadid"
)

// DefaultGrace is the default time for which a node is young.
const DefaultGrace = time.Hour

// Store is a store with garbage.
type Store interface {
	cas.Store
	cas.Compactor
	// Originals reports whether it belongs to the original, whose roots are in a separate database.
	Originals() bool
	// Dir returns its directory, for messages.
	Dir() string
}

// Options configures a collection.
type Options struct {
	// Homes lists all home directories whose threads are in the store. At least one is required unless there
	// is an Index, because otherwise nothing would be kept.
	Homes []string
	// Index has further threads in the store, such as those of a database.
	Index heads.Index
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
func Run(ctx context.Context, s Store, o Options) (_ Report, err error) {
	c := newCollection(s, o)
	switch {
	case s.Originals():
		return c.report, fmt.Errorf("collect garbage in %s: %w: it is a store of the original, which has "+
			"variables that uwf cannot read", s.Dir(), errors.ErrUnsupported)
	case len(o.Homes) == 0 && o.Index == nil:
		return c.report, errors.New("collect garbage: no home directory given, so everything would be deleted")
	}
	if err := c.findCutoff(); err != nil {
		return c.report, err
	}
	if c.compaction, err = s.Compact(ctx, c.cutoff, o.DryRun); err != nil {
		return c.report, err
	}
	defer func() { err = errors.Join(err, c.compaction.Release()) }()
	if err := c.survey(ctx); err != nil {
		return c.report, err
	}
	if !o.DryRun {
		if err := c.sweep(ctx); err != nil {
			return c.report, err
		}
	}
	c.count()
	return c.report, nil
}

// Pack compacts what was put before the grace period, and keeps every node.
func Pack(ctx context.Context, s cas.Compactor, now time.Time) (err error) {
	c, err := s.Compact(ctx, now.Add(-DefaultGrace), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Release()) }()
	all := func(cas.Hash) bool { return true }
	if err := c.Write(ctx, all); err != nil {
		return err
	}
	return c.Finish(ctx, func() error { return nil }, all)
}

// collection is the state of one run.
type collection struct {
	store      Store
	compaction cas.Compaction
	options    Options
	report     Report

	items  []cas.Item // by ID
	marks  *marks
	cutoff time.Time // what was put after it stays

	runs, roots seen // what needn't be read again while writers wait
}

func newCollection(s Store, o Options) *collection {
	return &collection{
		store: s, options: o, report: Report{DryRun: o.DryRun},
		runs: seen{o.Now, map[string]fs.FileInfo{}}, roots: seen{o.Now, map[string]fs.FileInfo{}},
	}
}

// survey lists all nodes and marks the needed ones while other processes keep working.
func (c *collection) survey(ctx context.Context) error {
	for i, err := range c.compaction.Nodes(ctx) {
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		c.items = append(c.items, i)
		c.report.Bytes += i.Size
	}
	slices.SortFunc(c.items, func(a, b cas.Item) int { return strings.Compare(string(a.Hash), string(b.Hash)) })
	numbers := make([]uint64, len(c.items))
	for i, item := range c.items {
		numbers[i] = item.Hash.Number()
	}
	c.report.Nodes = len(c.items)
	c.marks = newMarks(c.store, census.Of(numbers))
	if err := c.markRoots(ctx); err != nil {
		return err
	}
	return c.markYoung(ctx)
}

// findCutoff moves the cutoff to before the start of every step with a running agent. It must be called before
// the heads are read: if a step ends in between, its head has already moved.
func (c *collection) findCutoff() error {
	now := c.options.Now()
	c.cutoff = now.Add(-c.options.Grace)
	for _, home := range c.options.Homes {
		begun, err := oldestRun(home, c.runs)
		if err != nil {
			return err
		}
		switch {
		case begun == nil:
		case begun.After(now):
			c.cutoff = time.Time{} // the clock was set back, so times are unreliable
		case begun.Before(c.cutoff):
			c.cutoff = *begun
		}
	}
	return nil
}

// markRoots marks the current roots of the homes.
func (c *collection) markRoots(ctx context.Context) error {
	for _, home := range c.options.Homes {
		if err := fileheads.Open(home, durable.OS()).CheckLost(ctx); err != nil && !c.options.Damaged {
			return &DamagedError{First: err}
		}
	}
	// The roots of the index come first, because damage below them counts.
	for _, home := range c.options.Homes {
		if _, err := os.Stat(home); err != nil {
			return fmt.Errorf("roots: %w", err)
		}
		x := fileheads.Open(home, durable.OS())
		if err := c.markAll(ctx, indexRoots(ctx, x, !c.roots.same(x.HistoryPath())), true); err != nil {
			return err
		}
	}
	if x := c.options.Index; x != nil {
		if err := c.markAll(ctx, indexRoots(ctx, x, true), true); err != nil {
			return err
		}
		if err := c.markAll(ctx, factRoots(ctx, x), false); err != nil {
			return err
		}
	}
	for _, home := range c.options.Homes {
		if err := c.markAll(ctx, c.runRoots(ctx, home), false); err != nil {
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

// markYoung marks young nodes that aren't marked yet, and what they reference, and counts them. A tombstone that
// was created here stays even if nothing needs it, because without it an import would restore the redacted
// content.
func (c *collection) markYoung(ctx context.Context) error {
	for _, i := range c.items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i.Tombstone {
			_, err := c.store.Get(ctx, i.Hash)
			if redacted, ok := cas.AsRedacted(err); ok && !redacted.Tombstone.Foreign {
				c.marks.set(i.Hash)
			}
		}
		if i.At.Before(c.cutoff) {
			continue
		}
		if !c.marks.marked(i.Hash) {
			c.report.Young++
		}
		if err := c.marks.from(ctx, i.Hash, false); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what isn't marked, after rechecking everything that has changed since the survey: once while
// others work, so that little remains to be done, and once while they can't.
func (c *collection) sweep(ctx context.Context) error {
	if err := c.compaction.Write(ctx, c.marks.marked); err != nil {
		return err
	}
	if err := c.recheck(ctx); err != nil {
		return err
	}
	if err := c.compaction.Finish(ctx, func() error { return c.recheck(ctx) }, c.marks.marked); err != nil {
		return err
	}
	for _, home := range c.options.Homes {
		sweepLocks(ctx, home)
	}
	return nil
}

// recheck marks what has become needed: by the roots, by a run that began earlier than was known, and by nodes
// that were put, also those put again. A new node might reference one that was garbage until then.
func (c *collection) recheck(ctx context.Context) error {
	before := c.cutoff
	if err := c.findCutoff(); err != nil {
		return err
	}
	if err := c.markRoots(ctx); err != nil {
		return err
	}
	for h, err := range c.compaction.New(ctx) {
		if err != nil {
			return err
		}
		if err := c.marks.from(ctx, h, false); err != nil {
			return err
		}
	}
	if !c.cutoff.Before(before) {
		c.cutoff = before
		return ctx.Err()
	}
	return c.markYoung(ctx)
}

// count counts what was removed, or would be.
func (c *collection) count() {
	for _, i := range c.items {
		if !c.marks.marked(i.Hash) {
			c.report.Freed++
			c.report.FreedSize += i.Size
		}
	}
	c.report.Reachable = c.report.Nodes - c.report.Freed
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
