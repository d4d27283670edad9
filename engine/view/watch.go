package view

import (
	"context"
	"errors"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
)

// pause is how often a running step is looked at.
const pause = 200 * time.Millisecond

// Follow reports the steps of a thread that another process makes, as if they were
// made here, until nothing works on the thread any more.
func Follow(ctx context.Context, e *engine.Engine, id string, told engine.Progress) error {
	w, err := newWatcher(ctx, e, id, told)
	if err != nil {
		return err
	}
	return w.watch(ctx)
}

// watcher looks at a thread again and again, and tells what is new.
type watcher struct {
	engine  *engine.Engine
	id      string
	to      engine.Progress
	head    protocol.Hash
	steps   int // that have been told of
	flight  *engine.Flight
	info    engine.StepInfo
	told    int
	printed string // the line of a command that was shown last
}

func newWatcher(ctx context.Context, e *engine.Engine, id string, to engine.Progress) (*watcher, error) {
	w := &watcher{engine: e, id: id, to: to}
	f, err := e.Flight(ctx, id)
	if err != nil {
		return nil, err
	}
	if w.head, err = e.Head(ctx, id); err != nil {
		return nil, err
	}
	if f != nil {
		w.head = f.Head
	}
	t, err := thread.Open(ctx, e.Store, w.head)
	if err != nil {
		return nil, err
	}
	w.steps = t.Len()
	return w, nil
}

// watch looks until nothing works on the thread any more.
func (w *watcher) watch(ctx context.Context) error {
	for {
		// Asked first: all that was done before the answer is then seen below.
		busy, err := w.engine.Busy(ctx, w.id)
		if err != nil {
			return err
		}
		if err := w.look(ctx, busy); err != nil {
			return err
		}
		if !busy {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// look tells what is new. busy: somebody worked on the thread before it, so that
// another look follows.
func (w *watcher) look(ctx context.Context, busy bool) error {
	f, err := w.engine.Flight(ctx, w.id)
	if err != nil {
		return err
	}
	head, err := w.engine.Head(ctx, w.id)
	if err != nil {
		return err
	}
	if f != nil {
		head = f.Head
	}
	if head != w.head {
		now, err := w.engine.Show(ctx, w.id)
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
		w.flight, w.told, w.printed = f, 0, ""
		w.info = engine.StepInfo{Thread: w.id, Number: f.Number, Role: f.Role, Agent: f.Agent, Started: f.Started}
		w.to.StepStarted(w.info)
	}
	return w.turns(ctx, f)
}

// turns tells the turns that have been announced since.
func (w *watcher) turns(ctx context.Context, f *engine.Flight) error {
	for ; w.told < len(f.Turns); w.told++ {
		t, err := thread.ShownTurn(ctx, w.engine.Store, f.Turns[w.told])
		switch {
		case err == nil:
			w.to.Turn(w.info, t)
		case !thread.IsNoTurn(err):
			return err
		}
	}
	if f.Printed != w.printed {
		w.printed = f.Printed
		w.to.Writing(w.info, engine.PrintedTurn(f.Printed))
	}
	if f.Writing == "" || f.Writing == w.flight.Writing {
		return nil
	}
	w.flight.Writing = f.Writing
	t, err := thread.ShownTurn(ctx, w.engine.Store, f.Writing)
	if thread.IsNoTurn(err) {
		return nil // it is whole by now, and comes with the turns
	}
	if err == nil {
		w.to.Writing(w.info, t)
	}
	return err
}

// unsettled reports whether nothing comes after the last step, and that the thread has
// ended is not written down yet.
func unsettled(s protocol.StepOutput) bool {
	return (s.Status == protocol.StatusIdle || s.Status == protocol.StatusRunning) && s.CurrentRole == nil && s.Error == nil
}

// arrive reports the steps that lead to a new head, where the thread stands now.
func (w *watcher) arrive(ctx context.Context, head protocol.Hash, now protocol.StepOutput) error {
	t, err := thread.Open(ctx, w.engine.Store, head)
	if err != nil {
		return err
	}
	var made []thread.Step // newest first
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return err
		}
		// One that was poked takes the place of the last one.
		if s.Index < w.steps && len(made) > 0 || s.Index < w.steps-1 {
			break
		}
		made = append(made, s)
	}
	for i := len(made) - 1; i >= 0; i-- {
		next := now
		if i > 0 {
			next = protocol.StepOutput{Status: protocol.StatusIdle, CurrentRole: &made[i-1].Role}
		} else if now.Status == protocol.StatusRunning {
			next = protocol.StepOutput{Status: protocol.StatusIdle, CurrentRole: now.CurrentRole}
		}
		w.made(made[i], next)
	}
	w.head, w.steps = head, t.Len()
	return nil
}

// made reports a step that is finished.
func (w *watcher) made(s thread.Step, out protocol.StepOutput) {
	info := w.info
	if w.flight == nil || w.flight.Number != s.Index+1 {
		info = engine.StepInfo{
			Thread: w.id, Number: s.Index + 1, Role: s.Role, Agent: s.Agent,
			Started: time.UnixMilli(s.StartedAtMs), Ended: time.UnixMilli(s.CompletedAtMs),
		}
		w.to.StepStarted(info)
	}
	w.flight = nil
	out.Thread, out.Role, out.StepHash, out.Agent, out.Usage = w.id, &s.Role, &s.Hash, s.Agent, s.Usage
	w.to.StepEnded(info, out, nil)
}

// failed tells that the step in flight has ended without a result.
func (w *watcher) failed(ctx context.Context) error {
	w.flight = nil
	now, err := w.engine.Show(ctx, w.id)
	if err != nil {
		return err
	}
	why := errors.New("it came to nothing")
	if now.Error != nil {
		why = errors.New(now.Error.Message)
	}
	w.to.StepEnded(w.info, now, why)
	return nil
}
