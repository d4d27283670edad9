package view

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/summary"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/sorting"
)

// Summary has the properties by which lists filter, sort and count threads.
type Summary struct {
	Title, Workflow, Project string // Workflow is a name, Project the base name of a directory
	Status                   protocol.Status
	Since, Started           int64 // ms
	CostUSD                  float64
	Waits                    bool // it, or a child, needs a person
	Busy                     bool // it works, or its children do
}

// Summaries remembers what lists show of threads: what follows from a node forever, and in memory whole summaries. A
// summary is valid for a head, until the facts of the thread, its run directory or the config change. A thread that
// can change without that, because a process or its children work on it, is read each time. The zero value is empty,
// nil remembers nothing. Safe for concurrent use.
type Summaries struct {
	nodes  summary.Set
	mu     sync.Mutex
	of     map[string]*summarized
	names  map[string]string
	config string // stamp of the config that the summaries depend on
	facts  map[string]heads.Facts
	age    int // of facts: how often they were read anew
}

type summarized struct {
	Summary
	head  protocol.Hash
	ended int64        // ms; 0: active
	facts *heads.Facts // nil: none
	age   int          // of all facts when they were compared last
	stamp int64        // of the run directory; 0: there is none
}

const (
	// maxSummaries bounds the memory: 150,000 summaries are some 60 MB.
	maxSummaries = 150_000
	// racy is the age from which a run directory cannot change again within the same timestamp.
	racy = time.Second
)

// SavedSummaries returns what the lists of a home have saved.
func SavedSummaries(e *engine.Engine) *Summaries {
	c := &Summaries{}
	c.nodes.Load(e.Reader.Dirs.Summaries())
	return c
}

// Save saves what is new, unless that is little. A home that is not writable can do without it.
func (c *Summaries) Save(e *engine.Engine) {
	if e.Reader.FS != nil && !e.Reader.ReadOnly {
		_ = c.nodes.Save(e.Reader.FS, e.Reader.Dirs.Summaries())
	}
}

// ForgetSummaries removes what the lists of a home have saved, because it contains titles of removed threads.
func ForgetSummaries(e *engine.Engine) error {
	return summary.Forget(e.Reader.FS, e.Reader.Dirs.Summaries())
}

func (c *Summaries) known() *summary.Set {
	if c == nil {
		return nil
	}
	return &c.nodes
}

// Of returns the summaries of threads, in their order.
func (c *Summaries) Of(ctx context.Context, e *engine.Engine, threads []status.Listed) []*Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := configStamp(e); c.of == nil || c.config != now || len(c.of)+len(threads) > 2*maxSummaries {
		c.of, c.names, c.config = make(map[string]*summarized, len(threads)), map[string]string{}, now
	}
	facts, _ := e.Reader.Heads.AllFacts(ctx) // what cannot be read is left out, as in lists
	parents := parentsIn(facts)
	if reflect.ValueOf(facts).Pointer() != reflect.ValueOf(c.facts).Pointer() {
		c.facts, c.age = facts, c.age+1
	}
	now := e.Reader.Env.Now()
	stamps := runStamps(e, threads)
	out := make([]*Summary, len(threads))
	var unknown []status.Listed
	var at []int // their places
	for i, l := range threads {
		if s := c.of[l.Thread]; s != nil && s.head == l.Head && s.ended == endOf(l) && s.stamp == stamps[i] &&
			(s.age == c.age || reflect.DeepEqual(s.facts, factsOf(facts, l.Thread))) {
			out[i], s.age = &s.Summary, c.age
			continue
		}
		unknown, at = append(unknown, l), append(at, i)
	}
	for s := range threadInfos(ctx, e, unknown, Filter{Ended: true, Known: c}, false) { // in their order
		i := at[0]
		l := threads[i]
		at = at[1:]
		read := summarized{Summary: c.summaryOf(s, facts[s.Thread]), head: l.Head, ended: endOf(l),
			facts: factsOf(facts, s.Thread), age: c.age, stamp: stamps[i]}
		out[i] = &read.Summary
		settled := !read.Busy && s.Status != protocol.StatusRateLimited && (l.Ended != nil || !parents[s.Thread]) &&
			(read.stamp == 0 || now.Sub(time.Unix(0, read.stamp)) > racy && !e.Reader.Moving(s.Thread, l.Head))
		if delete(c.of, s.Thread); settled && len(c.of) < maxSummaries {
			c.of[s.Thread] = &read
		}
	}
	for _, i := range at { // ctx has ended
		out[i] = &Summary{}
	}
	return out
}

// first returns those threads that have waited longest, and the first of those at work, in their order, most of
// each.
func (c *Summaries) first(ctx context.Context, e *engine.Engine, all []status.Listed,
	most int) (chosen []status.Listed, more, moreAtWork int) {
	type one struct {
		status.Listed
		since int64
	}
	var waits []one
	for i, s := range c.Of(ctx, e, all) {
		switch {
		case s.Waits: // perhaps at work as well
			waits = append(waits, one{all[i], s.Since})
		case s.Busy && len(chosen) < most:
			chosen = append(chosen, all[i])
		case s.Busy:
			moreAtWork++
		}
	}
	sorting.Stable(waits, func(a, b one) int { return cmp.Compare(a.since, b.since) })
	more = max(0, len(waits)-most)
	for _, w := range waits[:len(waits)-more] {
		chosen = append(chosen, w.Listed)
	}
	return newestFirst(chosen), more, moreAtWork
}

func endOf(l status.Listed) int64 {
	if l.Ended == nil {
		return 0
	}
	return max(1, l.Ended.CompletedAt)
}

func factsOf(all map[string]heads.Facts, id string) *heads.Facts {
	if f, ok := all[id]; ok {
		return &f
	}
	return nil
}

// name returns one copy of a name that many threads have.
func (c *Summaries) name(name string) string {
	if c.names[name] == "" {
		name = strings.Clone(name)
		c.names[name] = name
	}
	return c.names[name]
}

func (c *Summaries) summaryOf(s status.ThreadInfo, facts heads.Facts) Summary {
	out := Summary{
		Title: strings.Clone(s.Title), Workflow: c.name(string(s.WorkflowName)), Status: s.Status, Since: ms(s.Since), Started: ms(s.StartedAt),
		Busy:  s.Status == protocol.StatusRunning || s.Status == protocol.StatusWaitingForChildren,
		Waits: len(s.Actions())+len(asking(s.At)) > 0,
	}
	dir := s.Dir
	if facts.Workspace != nil {
		dir = cmp.Or(facts.Workspace.Repo, facts.Workspace.Root, dir)
	}
	if dir != "" {
		out.Project = c.name(filepath.Base(dir))
	}
	if s.Totals != nil {
		out.CostUSD = protocol.AmountOf(*s.Totals).CostUSD
	}
	return out
}

// configStamp changes with the files that set the limits of threads.
func configStamp(e *engine.Engine) (stamp string) {
	for _, path := range []string{e.Reader.Dirs.Config(), e.Reader.Dirs.DotEnv(), e.Project} {
		if info, err := os.Stat(path); err == nil {
			stamp += info.ModTime().String()
		}
		stamp += "\n"
	}
	return stamp
}

// runStamps returns when the run directories of threads changed last. Each file of a run is replaced
// as a whole, which changes the directory.
func runStamps(e *engine.Engine, threads []status.Listed) []int64 {
	stamps := make([]int64, len(threads))
	there := map[string]bool{}
	entries, _ := os.ReadDir(filepath.Dir(e.Reader.Dirs.Run("x"))) // none before the first run
	for _, entry := range entries {
		there[entry.Name()] = true
	}
	var wait sync.WaitGroup
	const each = 10_000
	for from := 0; from < len(threads); from += each {
		wait.Go(func() {
			for i := from; i < min(from+each, len(threads)); i++ {
				if !there[threads[i].Thread] {
					continue
				}
				if info, err := os.Lstat(e.Reader.Dirs.Run(threads[i].Thread)); err == nil {
					stamps[i] = info.ModTime().UnixNano()
				}
			}
		})
	}
	wait.Wait()
	return stamps
}
