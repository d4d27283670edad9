package view

import (
	"cmp"
	"context"
	"path/filepath"

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

// Summaries remembers what lists show of nodes, which never change, so that a thread is read once for each head. The
// zero value is empty, nil remembers nothing. Safe for concurrent use.
type Summaries struct{ nodes summary.Set }

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

// Of returns the summaries of threads, in their order; they are empty after ctx has ended.
func (c *Summaries) Of(ctx context.Context, e *engine.Engine, threads []status.Listed) []Summary {
	facts, _ := e.Reader.Heads.AllFacts(ctx) // what cannot be read is left out, as in lists
	out := make([]Summary, 0, len(threads))
	for s := range threadInfos(ctx, e, threads, Filter{Ended: true, Known: c}, true) {
		out = append(out, summaryOf(s, facts[s.Thread]))
	}
	return out[:len(threads)]
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

func summaryOf(s status.ThreadInfo, facts heads.Facts) Summary {
	out := Summary{
		Title: s.Title, Workflow: string(s.WorkflowName), Status: s.Status, Since: ms(s.Since), Started: ms(s.StartedAt),
		Busy:  s.Status == protocol.StatusRunning || s.Status == protocol.StatusWaitingForChildren,
		Waits: s.NeedsPerson() || len(asking(s.At)) > 0,
	}
	dir := s.Dir
	if facts.Workspace != nil {
		dir = cmp.Or(facts.Workspace.Repo, facts.Workspace.Root, dir)
	}
	if dir != "" {
		out.Project = filepath.Base(dir)
	}
	if s.Totals != nil {
		out.CostUSD = protocol.AmountOf(*s.Totals).CostUSD
	}
	return out
}
