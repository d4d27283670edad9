package view

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/summary"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/sorting"
)

// StatsBy returns the names by which [Stats] can group steps.
func StatsBy() []string { return []string{"workflow", "role", "model", "agent", "day"} }

// Stats sums up the cost of steps that were finished after a time (zero: all), grouped by names of [StatsBy].
// A step shared by forks counts once. Steps of children count as steps of the run's workflow. The sums omit
// unknown costs and include the number of steps with unknown cost. Tries that made no step are omitted. Days
// are in the time zone of the engine's clock. known is nil, or remembers the steps.
func Stats(ctx context.Context, e *engine.Engine, known *Summaries, after time.Time, by []string) (protocol.Stats, error) {
	s := stats{
		engine: e, known: known.known(), after: after.UnixMilli(),
		rows:  map[string]*protocol.StatsRow{},
		names: map[protocol.Hash]string{}, flows: map[string]protocol.Hash{},
		out: protocol.Stats{By: by, Rows: []protocol.StatsRow{}, Unread: []protocol.StatsHole{}},
	}
	if !after.IsZero() {
		s.out.Since = &s.after
	}
	unread := func(id string, err error) {
		s.out.Unread = append(s.out.Unread, protocol.StatsHole{Thread: id, Error: err.Error()})
	}
	all := Listed(ctx, e.Reader.Heads, Filter{Ended: true, Children: true}, func(err error) { unread("", err) })
	s.seen = make(map[protocol.Hash]bool, len(all))
	facts, _ := e.Reader.Heads.AllFacts(ctx) // threads with unreadable facts count as parents
	s.parents = parentsIn(facts)
	sorting.Stable(all, func(a, b status.Listed) int {
		// Parents before children in flight.
		return len(heads.Ancestors(facts, a.Thread)) - len(heads.Ancestors(facts, b.Thread))
	})
	for _, l := range all {
		if ctx.Err() != nil {
			return s.out, context.Cause(ctx)
		}
		if l.Ended != nil && s.out.Since != nil && l.Ended.CompletedAt < s.after {
			continue
		}
		parent := ""
		if at := facts[l.Thread].Parent; at != nil {
			parent = at.Thread
		}
		if err := s.thread(ctx, l, parent); err != nil {
			unread(l.Thread, err)
		}
	}
	s.out.Rows = inOrder(s.rows)
	return s.out, nil
}

// Regroup returns the same sums grouped by fewer names.
func Regroup(s protocol.Stats, by []string) protocol.Stats {
	rows := map[string]*protocol.StatsRow{}
	for _, r := range s.Rows {
		rowOf(rows, by, func(name string) string { return r.Of[name] }).Merge(r.Totals)
	}
	s.By, s.Rows = by, inOrder(rows)
	return s
}

// rowOf returns the row of a group, and creates it if it is missing.
func rowOf(rows map[string]*protocol.StatsRow, by []string, value func(name string) string) *protocol.StatsRow {
	of := map[string]string{}
	key := ""
	for _, name := range by {
		of[name] = value(name)
		key += of[name] + "\x00"
	}
	if rows[key] == nil {
		rows[key] = &protocol.StatsRow{Of: of}
	}
	return rows[key]
}

func inOrder(rows map[string]*protocol.StatsRow) []protocol.StatsRow {
	out := []protocol.StatsRow{}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		out = append(out, *rows[key])
	}
	sorting.Stable(out, func(a, b protocol.StatsRow) int {
		return cmp.Or(strings.Compare(a.Of["day"], b.Of["day"]), cmp.Compare(costOf(b), costOf(a)),
			cmp.Compare(tokensOf(b), tokensOf(a)))
	})
	return out
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
	engine  *engine.Engine
	known   *summary.Set
	after   int64 // Unix milliseconds
	seen    map[protocol.Hash]bool
	rows    map[string]*protocol.StatsRow
	names   map[protocol.Hash]string // names of workflows
	parents map[string]bool
	flows   map[string]protocol.Hash // by parent: the workflow of its run
	out     protocol.Stats
}

// parentsIn returns the threads that have children.
func parentsIn(facts map[string]heads.Facts) map[string]bool {
	parents := map[string]bool{}
	for _, f := range facts {
		if f.Parent != nil {
			parents[f.Parent.Thread] = true
		}
	}
	return parents
}

// thread adds the steps of a thread; parent is its parent, or "".
func (s *stats) thread(ctx context.Context, l status.Listed, parent string) error {
	if l.Ended != nil && parent != "" && s.seen[l.Head] {
		return nil // its parent has joined it
	}
	head, t, err := s.open(ctx, l.Head)
	if err != nil {
		return err
	}
	flow, known := s.flows[parent]
	if !known {
		flow = head.Workflow
	}
	if s.parents[l.Thread] {
		s.flows[l.Thread] = flow
	}
	some, err := s.chain(ctx, head, t, flow, 0)
	if some && parent == "" {
		s.out.Threads++
	}
	return err
}

// mostDepth limits the nesting of children. The engine and the store allow less.
const mostDepth = 100

// chain adds the steps of a chain and of the joined children, back to the first step that was added before or
// is too old. some reports whether it added any.
func (s *stats) chain(ctx context.Context, head *keptStep, t *thread.Thread, flow protocol.Hash,
	below int) (some bool, lost error) {
	for step, err := range s.steps(ctx, head, t) {
		if err != nil {
			return some, errors.Join(lost, err)
		}
		if s.seen[step.Hash] || s.out.Since != nil && step.Step.CompletedAtMs < s.after {
			break
		}
		some = true
		s.seen[step.Hash] = true
		if len(step.Step.Children) > 0 && below < mostDepth {
			own := *step.Step
			lost = errors.Join(lost, s.joined(ctx, &own, flow, below))
			step.Step = &own
		}
		s.add(ctx, step, flow)
	}
	return some, lost
}

// joined adds the steps of the children that a step has joined, and subtracts their usage from the step. The
// usage of missing children stays in the step.
func (s *stats) joined(ctx context.Context, step *protocol.Step, flow protocol.Hash, below int) (lost error) {
	var left []protocol.ChildEnded
	nothing := 0.0
	usage := protocol.Usage{CostUSD: &nothing}
	for _, c := range step.Children {
		head, t, err := s.open(ctx, c.Head)
		if err == nil {
			_, err = s.chain(ctx, head, t, flow, below+1)
		} else if left = append(left, c); c.Usage != nil {
			usage = usage.Add(*c.Usage)
		}
		lost = errors.Join(lost, err)
	}
	step.Children, step.Usage = left, &usage
	return lost
}

func (s *stats) add(ctx context.Context, step *keptStep, flow protocol.Hash) {
	rowOf(s.rows, s.out.By, func(by string) string { return s.value(ctx, step, flow, by) }).Add(*step.Step)
	s.out.Totals.Add(*step.Step)
}

// value returns a step's value of a grouping name, or "" if unknown.
func (s *stats) value(ctx context.Context, step *keptStep, flow protocol.Hash, by string) string {
	switch by {
	case "workflow":
		name, ok := s.names[flow]
		if !ok {
			if w, err := cas.Read[protocol.Workflow](ctx, s.engine.Reader.Store, flow); err == nil {
				name = w.Name
			}
			s.names[flow] = name
		}
		return name
	case "role":
		return step.Step.Role
	case "model":
		return s.model(ctx, step)
	case "agent":
		return step.Step.Agent
	case "day":
		return time.UnixMilli(step.Step.CompletedAtMs).In(s.engine.Reader.Env.Now().Location()).Format(time.DateOnly)
	}
	return ""
}

// keptStep is a step without its texts, or the start of a thread without steps.
type keptStep struct {
	summary.Node
	Hash protocol.Hash
}

// open returns a step or a start, and the thread if it had to be read.
func (s *stats) open(ctx context.Context, head protocol.Hash) (*keptStep, *thread.Thread, error) {
	if k := s.recall(head); k != nil {
		return k, nil, nil
	}
	t, err := thread.Open(ctx, s.engine.Reader.Store, head)
	if err != nil {
		return nil, nil, err
	}
	return s.keep(head, t, t.Last), t, nil
}

// recall returns a step or a start that is known, else nil.
func (s *stats) recall(h protocol.Hash) *keptStep {
	n, ok := s.known.Get(h)
	if !ok || n.Partial {
		return nil
	}
	return &keptStep{n, h}
}

// keep returns a step of a thread, or its start if step is nil, and remembers it.
func (s *stats) keep(h protocol.Hash, t *thread.Thread, step *thread.Step) *keptStep {
	k := &keptStep{status.SummaryOf(t, step), h}
	if _, known := s.known.Get(h); !known { // otherwise a list may know more
		s.known.Put(h, k.Node)
	}
	return k
}

// steps yields the steps of a chain, newest first. t is the thread at its head, or nil if it was not read.
func (s *stats) steps(ctx context.Context, head *keptStep, t *thread.Thread) iter.Seq2[*keptStep, error] {
	return func(yield func(*keptStep, error) bool) {
		for k := head; k != nil && k.Step != nil; {
			if !yield(k, nil) || k.Step.Prev == nil {
				return
			}
			last := k
			if k = s.recall(*last.Step.Prev); k != nil {
				continue
			}
			if t == nil || t.Head != last.Hash {
				var err error
				if t, err = thread.Open(ctx, s.engine.Reader.Store, last.Hash); err != nil {
					yield(nil, err)
					return
				}
			}
			for step, err := range t.Steps(ctx) {
				switch {
				case err != nil:
					yield(nil, err)
					return
				case step.Hash == last.Hash:
					continue
				}
				if !yield(s.keep(step.Hash, t, &step), nil) || step.Prev == nil {
					return
				}
				if k = s.recall(*step.Prev); k != nil {
					break
				}
			}
		}
	}
}

// model returns the model of a step.
func (s *stats) model(ctx context.Context, step *keptStep) string {
	if step.Model != nil {
		return *step.Model
	}
	d, err := thread.ShownDetail(ctx, s.engine.Reader.Store, step.Step.Detail)
	if n, known := s.known.Get(step.Hash); err == nil && known {
		n.Model = &d.Model
		s.known.Put(step.Hash, n)
	}
	return d.Model
}

// StatsCSV writes the result of [Stats] as CSV. Unknown values are empty cells. Errors are errors of w.
func StatsCSV(w io.Writer, s protocol.Stats) error {
	out := csv.NewWriter(w)
	_ = out.Write(append(slices.Clone(s.By), "steps", "durationMs", "tokensIn", "tokensOut", "stepsWithoutUsage",
		"costUsd", "stepsWithoutCost"))
	for _, r := range s.Rows {
		var cells []string
		for _, by := range s.By {
			cells = append(cells, harmlessCell(r.Of[by]))
		}
		in, written, cost := "", "", ""
		if u := r.Usage; u.Counted() {
			in, written = strconv.FormatInt(u.Tokens()-u.OutputTokens, 10), strconv.FormatInt(u.OutputTokens, 10)
		}
		if u := r.Usage; u != nil && u.CostUSD != nil {
			cost = strconv.FormatFloat(*u.CostUSD, 'f', -1, 64)
		}
		_ = out.Write(append(cells, strconv.Itoa(r.Steps), strconv.FormatInt(r.DurationMs, 10), in, written,
			strconv.Itoa(r.StepsWithoutUsage), cost, strconv.Itoa(r.StepsWithoutCost)))
	}
	out.Flush()
	return out.Error()
}

// harmlessCell returns untrusted text in a form that no spreadsheet evaluates as a formula.
func harmlessCell(s string) string {
	s = plaintext.Line(s)
	if s != "" && strings.ContainsAny(s[:1], "=+-@") {
		return "'" + s
	}
	return s
}
