// Package view returns the data that front ends display: lists of threads ([Listed], [Items]), the state and
// question of a thread ([Thread]), its steps and turns ([History], [Turns], [Live]), its path through the
// graph ([TraceOf]), its problems ([Diagnose]), and its events as they happen ([Follow]). For all threads
// together, it returns those that wait for a person ([Inbox]) and their costs ([Stats]). It changes nothing
// and takes no lock. Presentation is up to the caller.
//
// Errors are errors of the engine and the store.
package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// pause is the poll interval of a running step.
const pause = 200 * time.Millisecond

// Follow reports the events of a thread and its children that another process works on, in the same form as
// an engine's events. It returns when nothing works on them any longer.
func Follow(ctx context.Context, e *engine.Engine, id string, report func(engine.Event)) error {
	w, err := newWatcher(ctx, e, id, report)
	if err != nil {
		return err
	}
	return w.watch(ctx)
}

// watcher polls a thread and reports changes.
type watcher struct {
	engine   *engine.Engine
	id       string
	report   func(engine.Event)
	head     protocol.Hash
	steps    int // number of steps reported
	flight   *status.Flight
	info     engine.StepInfo
	shown    int
	printed  string              // last reported line of a command's output
	path     string              // path from the followed thread to this child
	label    string              // see [engine.StepInfo]
	children map[string]*watcher // by thread; nil if it has ended and everything is reported
	family   engine.StepInfo     // step that the children belong to
	labels   map[string]string   // labels of the children, by key
}

func newWatcher(ctx context.Context, e *engine.Engine, id string, report func(engine.Event)) (*watcher, error) {
	w := &watcher{engine: e, id: id, report: report}
	f, err := e.Reader.Flight(ctx, id)
	if err != nil {
		return nil, err
	}
	if w.head, err = e.Reader.Head(ctx, id); err != nil {
		return nil, err
	}
	if f != nil {
		w.head = f.Head
	}
	t, err := thread.Open(ctx, e.Reader.Store, w.head)
	if err != nil {
		return nil, err
	}
	w.steps = t.Len()
	return w, nil
}

// lookAtChildren reports changes of children.
func (w *watcher) lookAtChildren(ctx context.Context) error {
	started, err := w.engine.Reader.Started(ctx, w.id)
	if err != nil {
		return nil //nolint:nilerr // an unreadable thread counts as having no children
	}
	first := w.children == nil
	if first {
		w.children = map[string]*watcher{}
	}
	if err := w.reportChildren(ctx, started); err != nil {
		return err
	}
	for _, k := range started {
		child, known := w.children[k.Thread]
		if !known {
			if first && k.Ended {
				w.children[k.Thread] = nil
				continue
			}
			child = &watcher{engine: w.engine, id: k.Thread, report: w.report}
			child.path, child.label = children.Below(w.path, w.label, k.Key, w.labels[k.Key])
			if child.head, child.steps, err = w.begin(ctx, k, first); err != nil {
				return err
			}
			w.children[k.Thread] = child
		}
		if child == nil {
			continue
		}
		if err := child.lookAt(ctx, k); err != nil {
			return err
		}
		if k.Ended {
			w.children[k.Thread] = nil
			w.report(engine.Event{Kind: engine.Children, Step: w.family, Children: []protocol.ChildOutput{
				{Key: k.Key, Thread: k.Thread, Status: k.Status, Label: w.labels[k.Key]}}})
		}
	}
	return w.lookAtJoined(ctx, started)
}

// reportChildren reports the states of all children if some are new.
func (w *watcher) reportChildren(ctx context.Context, started []status.StartedChild) error {
	if !slices.ContainsFunc(started, func(k status.StartedChild) bool { _, known := w.children[k.Thread]; return !known }) {
		return nil
	}
	now, err := w.engine.Reader.Show(ctx, w.id)
	if err != nil {
		return err
	}
	w.family = engine.StepInfo{Thread: w.id, Path: w.path, Label: w.label, Number: w.steps + 1}
	w.family.Role = string(cmp.Or(now.CurrentRole, now.SuspendedRole))
	w.labels = map[string]string{}
	for _, k := range now.Children {
		w.labels[k.Key] = k.Label
	}
	if len(now.Children) > 0 {
		w.report(engine.Event{Kind: engine.Children, Step: w.family, Children: now.Children})
	}
	return nil
}

// begin returns the head from which a child's steps are reported: its current head on the first poll, later
// its start.
func (w *watcher) begin(ctx context.Context, k status.StartedChild, first bool) (protocol.Hash, int, error) {
	t, err := thread.Open(ctx, w.engine.Reader.Store, k.Head)
	if err != nil {
		return "", 0, err
	}
	if first {
		return k.Head, t.Len(), nil
	}
	return t.StartHash, 0, nil
}

// lookAt polls a child and its own children. If it has ended by now, the ends of its children may not have
// been reported yet.
func (w *watcher) lookAt(ctx context.Context, k status.StartedChild) error {
	if !k.Ended || w.children != nil {
		if err := w.lookAtChildren(ctx); err != nil {
			return err
		}
	}
	return w.look(ctx, !k.Ended)
}

// lookAtJoined reports the remaining steps of children whose parent has moved on.
func (w *watcher) lookAtJoined(ctx context.Context, started []status.StartedChild) error {
	for id, child := range w.children {
		if child == nil || slices.ContainsFunc(started, func(k status.StartedChild) bool { return k.Thread == id }) {
			continue
		}
		w.children[id] = nil
		if err := child.lookAt(ctx, status.StartedChild{Thread: id, Ended: true}); err != nil {
			return err
		}
	}
	return nil
}

// watch polls until nothing works on the thread any longer.
func (w *watcher) watch(ctx context.Context) error {
	for {
		// Ask first, so that everything done before the answer is seen below.
		busy, err := w.engine.Reader.Busy(ctx, w.id)
		if err != nil {
			return err
		}
		if err := errors.Join(w.lookAtChildren(ctx), w.look(ctx, busy)); err != nil {
			return err
		}
		if !busy {
			return nil
		}
		if err := retry.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// look reports changes. busy means that the thread was being worked on before, so that another look will
// follow.
func (w *watcher) look(ctx context.Context, busy bool) error {
	f, err := w.engine.Reader.Flight(ctx, w.id)
	if err != nil {
		return err
	}
	head, err := w.engine.Reader.Head(ctx, w.id)
	if err != nil {
		return err
	}
	if f != nil {
		head = f.Head
	}
	if head != w.head {
		now, err := w.engine.Reader.Show(ctx, w.id)
		if err != nil {
			return err
		}
		if busy && unsettled(now) {
			return nil
		}
		if err := w.arrive(ctx, head, now); err != nil {
			return err
		}
	}
	if w.flight != nil && (f == nil || !f.Started.Equal(w.flight.Started)) {
		if err := w.failed(ctx); err != nil {
			return err
		}
	}
	if f == nil {
		return nil
	}
	if w.flight == nil {
		w.flight, w.shown, w.printed = f, 0, ""
		w.info = engine.StepInfo{Thread: w.id, Path: w.path, Label: w.label, Number: f.Number, Role: f.Role,
			Agent: f.Agent, Started: f.Started}
		w.report(engine.Event{Kind: engine.StepStarted, Step: w.info})
	}
	return w.turns(ctx, f)
}

// turns reports newly announced turns.
func (w *watcher) turns(ctx context.Context, f *status.Flight) error {
	for ; w.shown < len(f.Turns); w.shown++ {
		t, err := thread.ShownTurn(ctx, w.engine.Reader.Store, f.Turns[w.shown])
		switch {
		case err == nil:
			w.report(engine.Event{Kind: engine.Turn, Step: w.info, Turn: &t})
		case !thread.IsNoMessage(err):
			return err
		}
	}
	if f.Printed != w.printed {
		w.printed = f.Printed
		t := f.PrintedTurn()
		w.report(engine.Event{Kind: engine.Writing, Step: w.info, Turn: &t})
	}
	if f.Writing == "" || f.Writing == w.flight.Writing {
		return nil
	}
	w.flight.Writing = f.Writing
	t, err := thread.ShownTurn(ctx, w.engine.Reader.Store, f.Writing)
	if thread.IsNoMessage(err) {
		return nil // the turn is complete by now and is reported as such
	}
	if err == nil {
		w.report(engine.Event{Kind: engine.Writing, Step: w.info, Turn: &t})
	}
	return err
}

// unsettled reports whether the thread is at its end but not archived yet.
func unsettled(s protocol.StepOutput) bool {
	return (s.Status == protocol.StatusIdle || s.Status == protocol.StatusRunning) && s.CurrentRole == "" &&
		s.Error == nil
}

// arrive reports the steps up to a new head; now is the thread's state.
func (w *watcher) arrive(ctx context.Context, head protocol.Hash, now protocol.StepOutput) error {
	t, err := thread.Open(ctx, w.engine.Reader.Store, head)
	if err != nil {
		return err
	}
	var made []thread.Step // newest first
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return err
		}
		// A poked step replaces the last one.
		if s.Index < w.steps && len(made) > 0 || s.Index < w.steps-1 {
			break
		}
		made = append(made, s)
	}
	for i := len(made) - 1; i >= 0; i-- {
		next := now
		if i > 0 {
			next = protocol.StepOutput{Status: protocol.StatusIdle, CurrentRole: protocol.NullString(made[i-1].Role)}
		} else if now.Status == protocol.StatusRunning {
			next = protocol.StepOutput{Status: protocol.StatusIdle, CurrentRole: now.CurrentRole}
		}
		w.made(made[i], next)
	}
	w.head, w.steps = head, t.Len()
	return nil
}

// made reports a finished step.
func (w *watcher) made(s thread.Step, out protocol.StepOutput) {
	info := w.info
	if w.flight == nil || w.flight.Number != s.Index+1 {
		info = engine.StepInfo{
			Thread: w.id, Path: w.path, Label: w.label, Number: s.Index + 1, Role: s.Role, Agent: s.Agent,
			Started: time.UnixMilli(s.StartedAtMs), Ended: time.UnixMilli(s.CompletedAtMs),
		}
		w.report(engine.Event{Kind: engine.StepStarted, Step: info})
	}
	w.flight = nil
	out.Thread, out.Role, out.StepHash, out.Agent, out.Usage = w.id, protocol.NullString(s.Role), protocol.NullHash(s.Hash), s.Agent, s.Usage
	w.report(engine.Event{Kind: engine.StepEnded, Step: info, Output: &out})
}

// failed reports that the step in flight ended without a result.
func (w *watcher) failed(ctx context.Context) error {
	w.flight = nil
	now, err := w.engine.Reader.Show(ctx, w.id)
	if err != nil {
		return err
	}
	why := errors.New("it failed")
	if now.Error != nil {
		why = errors.New(now.Error.Message)
	}
	w.report(engine.Event{Kind: engine.StepEnded, Step: w.info, Output: &now, Err: why})
	return nil
}

// Tokens formats the known tokens and the number of steps with unknown ones.
func Tokens(t protocol.Totals) string { return tokens(t, Thousands) }

// TokensRounded is [Tokens] with rounded numbers.
func TokensRounded(t protocol.Totals) string { return tokens(t, rounded) }

func tokens(t protocol.Totals, number func(int64) string) string {
	switch {
	case t.Steps+t.FailedTries == 0:
		return ""
	case !t.Usage.Counted():
		return "unknown"
	}
	text := fmt.Sprintf("%s%s in, %s out", atLeast(t.StepsWithoutUsage),
		number(t.Usage.InputTokens+t.Usage.CacheReadTokens+t.Usage.CacheWriteTokens), number(t.Usage.OutputTokens))
	if cached := t.Usage.CacheReadTokens; cached > 0 {
		text += fmt.Sprintf(" (%s of them from a cache)", number(cached))
	}
	return text + unknownOf(t.StepsWithoutUsage, t)
}

// Cost formats the known cost and the number of steps with unknown cost.
func Cost(t protocol.Totals) string {
	switch {
	case t.Steps+t.FailedTries == 0:
		return ""
	case t.Usage == nil || t.Usage.CostUSD == nil:
		return "unknown"
	}
	return atLeast(t.StepsWithoutCost) + protocol.Dollars(*t.Usage.CostUSD) + unknownOf(t.StepsWithoutCost, t)
}

// Note formats the cost of a role.
func Note(t protocol.Totals) string { return note(t, StepTokens) }

// NoteRounded is [Note] with rounded numbers.
func NoteRounded(t protocol.Totals) string { return note(t, ShortTokens) }

func note(t protocol.Totals, tokens func(*protocol.Usage) string) string {
	parts := []string{fmt.Sprintf("×%d", t.Steps), render.Duration(t.DurationMs)}
	if t.Usage.Counted() {
		parts = append(parts, atLeast(t.StepsWithoutUsage)+tokens(t.Usage))
	} else {
		parts = append(parts, "tokens unknown")
	}
	if t.Usage != nil && t.Usage.CostUSD != nil {
		parts = append(parts, atLeast(t.StepsWithoutCost)+protocol.Dollars(*t.Usage.CostUSD))
	}
	return strings.Join(parts, " · ")
}

// StepTokens formats the tokens of a step.
func StepTokens(u *protocol.Usage) string {
	if !u.Counted() {
		return "?"
	}
	return fmt.Sprintf("%d in, %d out", u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, u.OutputTokens)
}

// ShortTokens formats the tokens of a step with rounded numbers.
func ShortTokens(u *protocol.Usage) string {
	return fmt.Sprintf("%s in, %s out", rounded(u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens), rounded(u.OutputTokens))
}

// Changes formats the amount of file changes.
func Changes(t protocol.FileTotals) string {
	if t.Files == 0 {
		return "none"
	}
	text := render.Count(t.Files, "file")
	if t.Added+t.Removed > 0 {
		text += fmt.Sprintf(" +%d -%d", t.Added, t.Removed)
	}
	return text
}

// Artifacts formats the size of a run's artifacts.
func Artifacts(a protocol.Artifacts) string {
	text := render.Count(a.Files, "file") + ", " + render.Size(a.Bytes)
	if a.More {
		text = "more than " + text
	}
	return text
}

func unknownOf(n int, t protocol.Totals) string {
	of := t.Steps + min(1, t.FailedTries)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; unknown for %d of %s", n, render.Count(of, "step"))
}

// atLeast returns a marker for a lower bound if unknown is not 0.
func atLeast(unknown int) string {
	if unknown == 0 {
		return ""
	}
	return "at least "
}

// LimitsText formats the limits of a run: "100 steps, $5.00 in all".
func LimitsText(l protocol.Limits) string {
	var parts []string
	for _, x := range protocol.AllLimits() {
		amount := Thousands(int64(x.Number(l)))
		switch x.Unit {
		case protocol.UnitDollars:
			amount = protocol.Dollars(x.Number(l))
		case protocol.UnitMs:
			amount = render.Duration(int64(x.Number(l)))
		}
		if x.Number(l) > 0 {
			parts = append(parts, amount+" "+x.Of)
		}
	}
	return strings.Join(parts, ", ")
}

// rounded formats a number with at most one decimal: "900", "12.0k", "1.5M".
func rounded(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// Thousands groups the digits of a number.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
