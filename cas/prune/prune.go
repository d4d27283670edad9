// Package prune forgets threads that ended long ago, so that the collector can
// free what they alone needed. It is only ever done when somebody asks for it.
//
// A forgotten thread is gone from the history; its nodes are still there until
// the next collection, and its head, which the report names, leads to them.
package prune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// Options of a run.
type Options struct {
	Home   string
	Keep   time.Duration // threads that ended within this time stay
	DryRun bool          // only show what would be forgotten
	Now    time.Time
	// Threads are all that may be forgotten, however long ago they ended; nil: all old ones.
	Threads []string
	// Spare says why a thread stays that would be forgotten; "": it may go. nil: all may.
	Spare func(ctx context.Context, thread string) (why string, err error)
}

// Report says what was done.
type Report struct {
	Pruned []heads.Ended `json:"pruned"` // what would be, in a dry run
	Kept   int           `json:"kept"`   // threads of the history that stay
	Busy   []string      `json:"busy"`   // somebody is at these threads: they stay as well
	Spared []Spared      `json:"spared,omitempty"`
	DryRun bool          `json:"dryRun"`
}

// Spared is a thread that stays.
type Spared struct {
	Thread string `json:"thread"`
	Why    string `json:"why"`
}

// batch is how many threads are locked at once, a file each: for each batch the history is
// read and rewritten.
const batch = 500

// Run forgets the threads that ended before o.Now - o.Keep. Errors: a line of the
// history that cannot be read; what the disk says.
func Run(ctx context.Context, o Options) (Report, error) {
	p := &pruner{
		options: o, dirs: home.Dirs{Home: o.Home}, disk: durable.OS(),
		report: Report{Pruned: []heads.Ended{}, Busy: []string{}, DryRun: o.DryRun},
	}
	p.index = fileheads.Open(o.Home, p.disk)
	old, err := p.old(ctx)
	if err != nil {
		return p.report, err
	}
	for len(old) > 0 {
		n := min(batch, len(old))
		if err := p.forget(ctx, old[:n]); err != nil {
			return p.report, err
		}
		old = old[n:]
	}
	p.report.Kept += len(p.report.Busy) + len(p.report.Spared)
	return p.report, nil
}

type pruner struct {
	options Options
	dirs    home.Dirs
	disk    durable.FS
	index   *fileheads.Heads
	report  Report
}

// old lists the threads that ended long enough ago. Children go with the thread that
// they play a part of, and stay as long as that does.
func (p *pruner) old(ctx context.Context) ([]heads.Ended, error) {
	cutoff := p.options.Now.Add(-p.options.Keep)
	facts, _ := p.index.AllFacts(ctx) // what cannot be read is no child
	var all []heads.Ended
	ended := map[string]heads.Ended{}
	for e, err := range p.index.History(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		ended[e.Thread] = e
	}
	active := map[string]bool{}
	for h, err := range p.index.Heads(ctx) {
		if err != nil {
			return nil, err // who is active is not known
		}
		active[h.Thread] = true
	}
	family := heads.Family(facts, p.options.Threads)
	var old []heads.Ended
	for _, e := range all {
		of := e
		root := heads.RootOf(facts, e.Thread)
		if parent, known := ended[root]; known {
			of = parent
		}
		chosen := endedAt(of).Before(cutoff) && !active[root]
		if p.options.Threads != nil {
			chosen = family[e.Thread]
		}
		if chosen {
			old = append(old, e)
		} else {
			p.report.Kept++
		}
	}
	return old, ctx.Err()
}

// endedAt is when a thread ended; if the history does not say, when it began.
func endedAt(e heads.Ended) time.Time {
	if e.CompletedAt > 0 {
		return time.UnixMilli(e.CompletedAt)
	}
	at, err := threadid.Time(e.Thread)
	if err != nil {
		return time.UnixMilli(0)
	}
	return at
}

// forget forgets some threads under their locks: one that is being resumed would
// lose what an agent has just done.
func (p *pruner) forget(ctx context.Context, threads []heads.Ended) (err error) {
	free := map[string]bool{}
	for _, e := range threads {
		lock, err := p.lock(e.Thread)
		if errors.Is(err, durable.ErrLocked) {
			p.report.Busy = append(p.report.Busy, e.Thread)
			continue
		}
		if err != nil {
			return err
		}
		// The lock of an ended thread goes with it; one that stays is only a small file.
		defer func() { _ = lock.RemoveAndUnlock() }()
		if p.options.Spare != nil {
			why, err := p.options.Spare(ctx, e.Thread)
			if err != nil {
				why = err.Error()
			}
			if why != "" {
				p.report.Spared = append(p.report.Spared, Spared{Thread: e.Thread, Why: why})
				continue
			}
		}
		free[e.Thread] = true
	}
	if p.options.DryRun {
		for _, e := range threads {
			if free[e.Thread] {
				p.report.Pruned = append(p.report.Pruned, e)
			}
		}
		return nil
	}
	for h, err := range p.index.Heads(ctx) {
		if err != nil {
			return err // who is active is not known
		}
		delete(free, h.Thread) // it was resumed before we had its lock
	}
	// The runs go first: one of a thread that nobody knows is a fault.
	for thread := range free {
		if err := p.removeRun(thread); err != nil {
			return fmt.Errorf("the last run of thread %s: %w", thread, err)
		}
	}
	forgotten, err := p.index.Forget(ctx, free)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	p.report.Pruned = append(p.report.Pruned, forgotten...)
	return nil
}

// lock takes a thread for us: from whoever steps or resumes it, and from an agent
// that has outlived its engine.
func (p *pruner) lock(thread string) (*durable.Held, error) {
	if alive, err := runfiles.Dir(p.dirs.Run(thread)).Alive(); alive || err != nil {
		return nil, cmp.Or(err, durable.ErrLocked)
	}
	return durable.TryLock(filepath.Join(p.dirs.Locks(), thread+".lock"))
}

// removeRun removes the directory of a thread's last run: the collector keeps
// what is named there.
func (p *pruner) removeRun(thread string) error {
	dir := p.dirs.Run(thread)
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			paths = append(paths, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(paths) { // what is in a directory comes after it
		if err := p.disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
