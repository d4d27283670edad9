package view

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/threadid"
)

// Filter selects threads. The zero value selects the active ones.
type Filter struct {
	Ended         bool              // include ended threads; Statuses takes precedence
	Children      bool              // include children
	Statuses      []protocol.Status // nil means all
	After, Before time.Time         // range of the start time; zero means unbounded
	Limit, Offset int               // maximum number (0: all, negative: none), and the number to skip first
	Known         *Summaries        // remembers what is read; can be nil
}

// Listed lists the threads, newest first. It reads only the heads. It calls damaged for each unreadable entry
// and for lost threads, and lists the others.
func Listed(ctx context.Context, x heads.Heads, f Filter, damaged func(error)) []status.Listed {
	var entries []status.Listed
	active := map[string]bool{}
	for h, err := range x.Heads(ctx) {
		if err != nil {
			damaged(err)
			continue
		}
		if f.wantsEnded() {
			active[h.Thread] = true
		}
		if f.inTime(h.Thread) {
			entries = append(entries, status.Listed{Thread: h.Thread, Head: h.Hash})
		}
	}
	if f.wantsEnded() {
		for e, err := range x.History(ctx) {
			if err != nil {
				damaged(err)
				continue
			}
			if !active[e.Thread] && f.inTime(e.Thread) {
				entries = append(entries, status.Listed{Thread: e.Thread, Head: e.Head, Ended: &e})
			}
		}
	}
	if a, ok := x.(heads.Auditor); ok {
		if err := a.CheckLost(ctx); err != nil {
			damaged(err)
		}
	}
	if f.Children {
		return newestFirst(entries)
	}
	facts, err := x.AllFacts(ctx)
	if err != nil { // list all threads anyway, even if children then appear as independent threads
		damaged(err)
	}
	if len(facts) > 0 {
		entries = slices.DeleteFunc(entries, func(l status.Listed) bool {
			id := l.Thread
			if l.Ended != nil {
				id = l.Ended.Thread
			}
			return facts[id].Parent != nil
		})
	}
	return newestFirst(entries)
}

func newestFirst(entries []status.Listed) []status.Listed {
	sorting.Func(entries, func(p, q status.Listed) int { return threadid.NewestFirst(p.Thread, q.Thread) })
	return entries
}

// Items yields the threads that match the filter. They are read during iteration, which can happen once and
// ends early with ctx.
func Items(ctx context.Context, e *engine.Engine, threads []status.Listed, f Filter) iter.Seq[protocol.ThreadItem] {
	return func(yield func(protocol.ThreadItem) bool) {
		for at := range threadInfos(ctx, e, threads, f, true) {
			if !yield(at.ThreadItem) {
				return
			}
		}
	}
}

// threadInfos is like [Items], but yields everything that was read; brief leaves out what items don't have.
func threadInfos(ctx context.Context, e *engine.Engine, threads []status.Listed, f Filter,
	brief bool) iter.Seq[status.ThreadInfo] {
	return func(yield func(status.ThreadInfo) bool) {
		skip, left := f.Offset, f.Limit
		if left < 0 {
			return
		}
		facts, _ := e.Reader.Heads.AllFacts(ctx) // ignore unreadable facts
		overview := e.Reader.Overview()
		overview.Known, overview.Brief = f.Known.known(), brief
		for item := range overview.Threads(ctx, threads) {
			item.Title, item.ForkedFrom = named(item.Title, facts[item.Thread])
			item.Imported = !facts[item.Thread].StartedHere()
			switch {
			case ctx.Err() != nil:
				return
			case !f.wants(item.Status):
				continue
			case skip > 0:
				skip--
				continue
			}
			if left--; !yield(item) || left == 0 {
				return
			}
		}
	}
}

// Ended returns how many threads ended in the filter's time range. It ignores unreadable entries.
func Ended(ctx context.Context, x heads.Heads, f Filter) int {
	f.Ended, f.Statuses = true, nil
	n := 0
	for _, l := range Listed(ctx, x, f, func(error) {}) {
		if l.Ended != nil {
			n++
		}
	}
	return n
}

// named returns a thread's title, and the origin of a fork.
func named(title string, facts heads.Facts) (string, *protocol.ForkedFrom) {
	if facts.Title != nil && *facts.Title != "" {
		title = *facts.Title
	}
	if facts.Fork == nil {
		return title, nil
	}
	return title, &protocol.ForkedFrom{Thread: facts.Fork.Thread, Step: facts.Fork.Step}
}

func (f Filter) inTime(id string) bool {
	if f.After.IsZero() && f.Before.IsZero() {
		return true
	}
	at, err := threadid.Time(id)
	if err != nil {
		return false
	}
	return (f.After.IsZero() || at.After(f.After)) && (f.Before.IsZero() || at.Before(f.Before))
}

// wantsEnded reports whether the list can contain ended threads. An explicit status takes precedence over
// --all.
func (f Filter) wantsEnded() bool {
	if f.Statuses == nil {
		return f.Ended
	}
	return slices.ContainsFunc(f.Statuses, func(s protocol.Status) bool {
		return s.Ends()
	})
}

func (f Filter) wants(s protocol.Status) bool {
	if f.Statuses == nil {
		return f.Ended || !s.AtEnd() // the fork of a last step is at its end, although it was never archived
	}
	return slices.Contains(f.Statuses, s)
}
