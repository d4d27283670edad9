// Package prune forgets threads that ended long ago, so that the collector can delete nodes that only they
// need. It runs only on request.
//
// A forgotten thread is removed from the history. Its nodes exist until the next collection and can be
// reached by its head, which is in the report.
package prune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// Index lists the threads of a home or a database.
type Index interface {
	heads.Heads
	// Forget removes ended threads and their facts. It ignores active and unknown ones, and returns how the
	// others had ended.
	Forget(ctx context.Context, threads map[string]bool) ([]heads.Ended, error)
}

// Options configures a run.
type Options struct {
	Home   string        // directory of the threads' locks and runs; "": there are none
	Keep   time.Duration // threads that ended more recently stay
	DryRun bool          // only report what would be forgotten
	Now    time.Time
	// Threads lists the only threads that can be forgotten, regardless of their age; nil: all old ones.
	Threads []string
	// Spare returns the reason why a thread must stay; "" if it can be forgotten. nil: all can.
	Spare func(ctx context.Context, thread string) (reasons string, err error)
}

// Report is the result of a run.
type Report struct {
	Pruned []heads.Ended `json:"pruned"` // threads forgotten, or to be forgotten in a dry run
	Kept   int           `json:"kept"`   // number of threads that stay in the history
	Busy   []string      `json:"busy"`   // threads in use, which also stay
	Spared []Spared      `json:"spared,omitempty"`
	DryRun bool          `json:"dryRun"`
}

// Spared is a thread that stays.
type Spared struct {
	Thread string `json:"thread"`
	Reason string `json:"why"`
}

// batch is the number of threads locked at once, each with its own file; for each batch the history is read
// and rewritten.
const batch = 500

// Run forgets the threads that ended before o.Now - o.Keep. It returns an error for an unreadable line of the
// history, or a disk error. A thread whose run can't be examined or removed is spared, unless it is one of o.Threads.
func Run(ctx context.Context, x Index, o Options) (Report, error) {
	p := &pruner{
		options: o, index: x, dirs: home.Dirs{Home: o.Home},
		report: Report{Pruned: []heads.Ended{}, Busy: []string{}, DryRun: o.DryRun},
	}
	old, err := p.old(ctx)
	if err != nil {
		return p.report, err
	}
	for len(old) > 0 {
		n := min(batch, len(old))
		if err := p.removeThreads(ctx, old[:n]); err != nil {
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
	index   Index
	report  Report
}

// old lists the threads that ended long enough ago. Children are forgotten together with their parent, and a
// family stays as long as one of its threads is active.
func (p *pruner) old(ctx context.Context) ([]heads.Ended, error) {
	cutoff := p.options.Now.Add(-p.options.Keep)
	facts, err := p.index.AllFacts(ctx)
	if err != nil && p.options.Threads == nil {
		return nil, err // it is unknown which threads belong together
	}
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
			return nil, err // it is unknown which threads are active
		}
		active[heads.RootOf(facts, h.Thread)] = true
	}
	family := heads.Family(facts, p.options.Threads)
	var old []heads.Ended
	for _, e := range all {
		root := heads.RootOf(facts, e.Thread)
		chosen := endedAt(cmp.Or(ended[root], e)).Before(cutoff) && !active[root]
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

// endedAt returns the end of a thread or, if unknown, its start.
func endedAt(e heads.Ended) time.Time {
	if e.CompletedAt > 0 {
		return time.UnixMilli(e.CompletedAt)
	}
	at, _ := threadid.Time(e.Thread) // an unknown time is long ago
	return at
}

// removeThreads forgets some threads under their locks: otherwise a thread being resumed could lose an agent's work.
func (p *pruner) removeThreads(ctx context.Context, threads []heads.Ended) (err error) {
	free := map[string]bool{}
	for _, e := range threads {
		unlock, err := p.lock(e.Thread)
		if errors.Is(err, durable.ErrLocked) {
			p.report.Busy = append(p.report.Busy, e.Thread)
			continue
		}
		if err != nil && p.options.Threads != nil {
			return err
		}
		why := ""
		if err == nil {
			defer unlock()
			if p.options.Spare != nil {
				why, err = p.options.Spare(ctx, e.Thread)
			}
		}
		if err != nil {
			why = err.Error() // one thread must not stop all others
		}
		if why != "" {
			p.report.Spared = append(p.report.Spared, Spared{Thread: e.Thread, Reason: why})
			continue
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
			return err // it is unknown which threads are active
		}
		delete(free, h.Thread) // resumed before we had its lock
	}
	// The runs are removed first, because a run of an unknown thread is an error.
	for thread := range free {
		if p.options.Home == "" {
			break
		}
		switch err := safeopen.RemoveAll(p.dirs.Run(thread)); {
		case err != nil && p.options.Threads != nil:
			return fmt.Errorf("the last run of thread %s: %w", thread, err)
		case err != nil: // for example, it has files of another user
			delete(free, thread)
			p.report.Spared = append(p.report.Spared, Spared{Thread: thread, Reason: err.Error()})
		}
	}
	forgotten, err := p.index.Forget(ctx, free)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	p.report.Pruned = append(p.report.Pruned, forgotten...)
	return nil
}

// lock locks a thread against processes that step or resume it, and against an agent that has outlived its
// engine.
func (p *pruner) lock(thread string) (unlock func(), err error) {
	if p.options.Home == "" {
		return func() {}, nil
	}
	if alive, err := runfiles.Dir(p.dirs.Run(thread)).Alive(); alive || err != nil {
		return nil, cmp.Or(err, durable.ErrLocked)
	}
	lock, err := durable.TryLock(filepath.Join(p.dirs.Locks(), thread+".lock"))
	if err != nil {
		return nil, err
	}
	// The lock of an ended thread is removed with it; one that stays is only a small file.
	return func() { _ = lock.RemoveAndUnlock() }, nil
}
