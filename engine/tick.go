package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
)

// Ticked is what became of a thread in a [Engine.Tick].
type Ticked struct {
	Thread string              `json:"thread"`
	Output protocol.StepOutput `json:"output"`
	Error  *protocol.StepError `json:"error,omitempty"`
}

// Due are the active threads that can go on now, oldest first: those that nobody works
// on, that wait for nobody, that are not parked, and that may work here. One that has failed
// waits for a person, since what may be tried again has been, and so does one whose last
// step a person has undone. With an error for entries that cannot be read it returns the
// others.
func (e *Engine) Due(ctx context.Context) ([]string, error) {
	facts, damaged := e.Heads.AllFacts(ctx)
	at := map[string]protocol.Hash{}
	var threads []Listed
	for h, err := range e.Heads.Heads(ctx) {
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		at[h.Thread] = h.Hash
		threads = append(threads, Listed{Thread: h.Thread, Head: h.Hash})
	}
	threads = slices.DeleteFunc(threads, func(l Listed) bool {
		f := facts[l.Thread]
		// What a parent that has gone another way had asked for is nobody's need.
		return f.Foreign() || e.takenBack(ctx, f, l.Head) || f.Parent != nil && at[f.Parent.Thread] != f.Parent.Head
	})
	var due []string
	for item := range e.Overview().Items(ctx, threads) {
		// One at its end that is active was killed before that was noted, which is its next step.
		if item.Status == protocol.StatusIdle || item.Status == protocol.StatusCompleted {
			due = append(due, item.Thread)
		}
	}
	return due, damaged
}

// Tick makes one step of every thread that can go on, up to parallel at once, and tells
// of each as it ends, on one goroutine at a time. A thread that somebody else has taken
// meanwhile is left to them. Errors are of the list of threads; what fails in a thread
// is told with it.
func (e *Engine) Tick(ctx context.Context, parallel int, o StepOptions, told func(Ticked)) error {
	due, err := e.Due(ctx)
	if len(due) == 0 {
		return err
	}
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
		next    = make(chan string)
	)
	for range min(max(parallel, 1), len(due)) {
		workers.Go(func() {
			for id := range next {
				t, ok := e.tickOne(ctx, id, o)
				if !ok {
					continue
				}
				mu.Lock()
				told(t)
				mu.Unlock()
			}
		})
	}
	for _, id := range due {
		select {
		case next <- id:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return errors.Join(err, context.Cause(ctx))
}

func (e *Engine) tickOne(ctx context.Context, id string, o StepOptions) (Ticked, bool) {
	out, err := e.Step(ctx, id, o)
	t := Ticked{Thread: id, Output: out}
	if err != nil {
		c := fault.Of(err)
		if c.Code == protocol.CodeLocked || errors.Is(err, heads.ErrNoThread) {
			return t, false
		}
		t.Error = fault.Step(c)
	}
	return t, true
}

// AwaitParked waits until a thread that is parked may go on. The clock may be set
// meanwhile, so it is asked again and again.
func (e *Engine) AwaitParked(ctx context.Context, thread string) error {
	for {
		facts, err := e.Heads.Facts(ctx, thread)
		if err != nil {
			return fault.Of(err)
		}
		until := e.parkedUntil(facts)
		if until == 0 {
			return nil
		}
		wait := min(time.UnixMilli(until).Sub(e.Env.Now())+time.Millisecond, time.Minute)
		if err := pause(ctx, wait); err != nil {
			return fault.Ended(ctx, err)
		}
	}
}
