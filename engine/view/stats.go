package view

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
)

// StatsBy are the names by which [Stats] can tell steps apart.
func StatsBy() []string { return []string{"workflow", "role", "model", "agent", "day"} }

// Stats sums up what steps have cost that were finished after a time (zero: all), in
// groups by names of [StatsBy]. A step that several threads share, being forks, counts
// once. What is not known is missing in the sums, which say of how many steps it is.
// Tries that never became a step count for nothing. The day is that of the engine's clock.
func Stats(ctx context.Context, e *engine.Engine, after time.Time, by []string) (protocol.Stats, error) {
	s := stats{
		engine: e, after: after.UnixMilli(), seen: map[protocol.Hash]bool{}, rows: map[string]*protocol.StatsRow{}, names: map[protocol.Hash]string{},
		out: protocol.Stats{By: by, Rows: []protocol.StatsRow{}, Unread: []protocol.StatsHole{}},
	}
	if !after.IsZero() {
		s.out.Since = &s.after
	}
	unread := func(id string, err error) {
		s.out.Unread = append(s.out.Unread, protocol.StatsHole{Thread: id, Error: err.Error()})
	}
	all := Filter{Ended: true}
	for _, l := range Listed(ctx, e.Heads, all, func(err error) { unread("", err) }) {
		if ctx.Err() != nil {
			return s.out, context.Cause(ctx)
		}
		if l.Ended != nil && s.out.Since != nil && l.Ended.CompletedAt < s.after {
			continue
		}
		if err := s.thread(ctx, l.Head); err != nil {
			unread(l.Thread, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.rows)) {
		s.out.Rows = append(s.out.Rows, *s.rows[key])
	}
	slices.SortStableFunc(s.out.Rows, func(a, b protocol.StatsRow) int {
		return cmp.Or(strings.Compare(a.Of["day"], b.Of["day"]), cmp.Compare(costOf(b), costOf(a)), cmp.Compare(tokensOf(b), tokensOf(a)))
	})
	return s.out, nil
}

func costOf(r protocol.StatsRow) float64 {
	if r.Usage == nil || r.Usage.CostUSD == nil {
		return -1
	}
	return *r.Usage.CostUSD
}

func tokensOf(r protocol.StatsRow) int64 {
	if r.Usage == nil {
		return -1
	}
	return r.Usage.Tokens()
}

type stats struct {
	engine *engine.Engine
	after  int64 // ms
	seen   map[protocol.Hash]bool
	rows   map[string]*protocol.StatsRow
	names  map[protocol.Hash]string // of workflows
	out    protocol.Stats
}

// thread adds the steps of a chain back to one that was added before, or is too old.
func (s *stats) thread(ctx context.Context, head protocol.Hash) error {
	t, err := thread.Open(ctx, s.engine.Store, head)
	if err != nil {
		return err
	}
	some := false
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return err
		}
		if s.seen[step.Hash] || s.out.Since != nil && step.CompletedAtMs < s.after {
			break
		}
		some = true
		s.seen[step.Hash] = true
		s.add(ctx, t, step)
	}
	if some {
		s.out.Threads++
	}
	return nil
}

func (s *stats) add(ctx context.Context, t *thread.Thread, step thread.Step) {
	of := map[string]string{}
	key := ""
	for _, by := range s.out.By {
		of[by] = s.value(ctx, t, step, by)
		key += of[by] + "\x00"
	}
	row := s.rows[key]
	if row == nil {
		row = &protocol.StatsRow{Of: of}
		s.rows[key] = row
	}
	row.Add(step.Step)
	s.out.Totals.Add(step.Step)
}

// value is what a step is told apart by; "" if it is not known.
func (s *stats) value(ctx context.Context, t *thread.Thread, step thread.Step, by string) string {
	switch by {
	case "workflow":
		name, ok := s.names[t.Start.Workflow]
		if !ok {
			if w, err := t.Workflow(ctx); err == nil {
				name = w.Name
			}
			s.names[t.Start.Workflow] = name
		}
		return name
	case "role":
		return step.Role
	case "model":
		if d, err := thread.ShownDetail(ctx, s.engine.Store, step.Detail); err == nil {
			return d.Model
		}
	case "agent":
		return step.Agent
	case "day":
		return time.UnixMilli(step.CompletedAtMs).In(s.engine.Env.Now().Location()).Format(time.DateOnly)
	}
	return ""
}
