package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/queue"
	"github.com/united-workforce/uwf/engine/retry"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// A driver runs a thread to its end, and its children with it, as many at once as there are
// places. It keeps no state that matters: another driver can follow one that was killed, and
// the threads' locks keep two drivers apart.

// driven is what the threads of one run share.
type driven struct {
	begun  time.Time
	places chan struct{} // one for each thread at work; a thread that waits for its children has none
	mu     sync.Mutex    // guards the progress
}

// driving returns an engine for a run of a thread with all its children.
func (e *Engine) driving(w Work) *Engine {
	if e.driven != nil {
		return e
	}
	n := w.Parallel
	if n <= 0 {
		n = 2 * runtime.NumCPU()
	}
	with := e.reading(e.RememberingCosts())
	with.driven = &driven{begun: e.Env.Now(), places: make(chan struct{}, n)}
	return with.speakingInTurn()
}

// drive works on a thread, and on its children until the thread itself can go on. h is the
// thread if it is already locked, else nil.
func (e *Engine) drive(ctx context.Context, thread string, h *lockedThread, w Work) (outs []protocol.StepOutput,
	err error) {
	for first := true; ; first = false {
		d, err := e.turn(ctx, thread, h, w, first)
		h = nil
		if err != nil || d.hand == nil && !d.drive {
			return appendOutput(outs, w, d.outs...), err
		}
		outs = appendOutput(outs, w, steps(d.outs)...)
		if d.hand != nil {
			below, err := e.handOn(ctx, *d.hand, w)
			if err != nil || w.Steps != UntilEnd {
				return appendOutput(outs, w, below...), err
			}
		} else if err := e.driveKids(ctx, thread, w); err != nil {
			return outs, fault.Ended(ctx, err)
		} else {
			w.Wake = false
		}
		w.Do, w.Cwd, w.Expect, w.Answer, w.Fresh, w.KeepFiles = DoStep, "", "", nil, false, false
	}
}

// handOn hands a person's words to the child that asks for them.
func (e *Engine) handOn(ctx context.Context, k children.Kid, w Work) ([]protocol.StepOutput, error) {
	o := w.StepOptions
	o.Cwd = ""
	below := Work{Do: w.Do, Steps: w.Steps, Prompt: w.Prompt, StepOptions: o}
	if w.Answer != nil {
		answer := *w.Answer
		answer.At = k.Head
		below.Answer = &answer
	}
	outs, err := e.below(k).drive(ctx, k.ID, nil, below)
	if err == nil && e.began != nil {
		e.began() // whoever has started this worker holds the lock, too, until something has begun
	}
	return outs, err
}

// below returns an engine that works on a child.
func (e *Engine) below(k children.Kid) *Engine {
	with := *e
	with.path, with.label = children.Below(e.path, e.label, k.Key, children.LabelOf(k.Child))
	return &with
}

// steps are the outputs of the steps that were made, without the output that says there is
// none to make.
func steps(outs []protocol.StepOutput) []protocol.StepOutput {
	var made []protocol.StepOutput
	for _, out := range outs {
		if out.StepHash != nil {
			made = append(made, out)
		}
	}
	return made
}

// turn works on a thread, in a place and under the thread's lock. If another process is
// already working on it, that is an error only the first time.
func (e *Engine) turn(ctx context.Context, thread string, h *lockedThread, w Work, first bool) (d did, err error) {
	for {
		if err := e.takePlace(ctx); err != nil {
			if h != nil {
				h.release()
			}
			return d, fault.Of(err)
		}
		if h == nil {
			h, err = e.lock(ctx, thread)
		}
		switch {
		case err != nil && (first && e.path == "" || !isBusy(err)):
			e.leavePlace()
			return d, fault.Of(err)
		case err == nil && !first && h.ended != nil && h.ended.Status == protocol.StatusCompleted:
			h.release() // another driver was faster
			e.leavePlace()
			out, err := e.Show(ctx, thread)
			return did{outs: []protocol.StepOutput{out}}, err
		case err == nil:
			d, err = e.do(ctx, h, w)
			h.release()
			if e.path == "" || !isBusy(err) || len(d.outs) > 0 {
				e.leavePlace()
				return d, err
			}
		}
		// The agent of a killed driver is still at work: wait for it and adopt its result.
		e.leavePlace()
		if h = nil; len(d.outs) == 0 {
			if _, err := e.WaitItself(ctx, thread); err != nil {
				return d, err
			}
		}
	}
}

// isBusy reports whether somebody is at work on the thread itself, so that waiting for it helps.
func isBusy(err error) bool {
	return errors.Is(err, &protocol.Error{Code: protocol.CodeLocked}) && !errors.Is(err, errParentOpen)
}

func (e *Engine) takePlace(ctx context.Context) error {
	select {
	case e.driven.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Engine) leavePlace() { <-e.driven.places }

// driveKids works on all children of a thread that have not ended, each until it ends, needs a
// person, or fails. A child that fails does not stop the others, unless by fault of the machine.
func (e *Engine) driveKids(ctx context.Context, thread string, w Work) error {
	dir := e.RunDir(thread)
	if err := dir.HoldBackNone(); err != nil {
		return err
	}
	pos, err := e.standing(ctx, thread)
	if err != nil {
		return err
	}
	of := e.tellKids(pos)
	most := cap(e.driven.places)
	if p := pos.Workflow.Roles[pos.Next.Role].Parallel; p > 0 {
		most = p
	}
	failures, mu := children.Failures{Place: pos.Place(), Of: len(pos.Kids)}, sync.Mutex{}
	due := slices.DeleteFunc(slices.Clone(pos.Kids), func(k children.Kid) bool {
		return k.Ended != nil && !k.Open || k.Status() == protocol.StatusSuspended || k.Head == ""
	})
	var stopped atomic.Bool
	queue.Work(ctx, most, due, func(k children.Kid) bool {
		if dir.HeldBack() {
			stopped.Store(true)
			return false
		}
		err := e.driveKid(ctx, k, w)
		e.tellRest(ctx, of, k, err)
		if err != nil {
			mu.Lock()
			failures.Add(k, err)
			mu.Unlock()
		}
		return !protocol.OfMachine(err)
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case stopped.Load() || dir.HeldBack():
		return fault.Hinted(fault.New(protocol.CodeTerminated, "thread %s was stopped while its children were at work",
			thread), "uwf thread resume "+thread)
	}
	return failures.Err()
}

// tellKids says where the children of a position stand, and returns what they belong to.
func (e *Engine) tellKids(pos *status.Position) StepInfo {
	of := StepInfo{Thread: pos.ID, Path: e.path, Label: e.label, Number: pos.Thread.Len() + 1, Role: pos.Next.Role,
		Started: e.Env.Now()}
	if e.Progress != nil && len(pos.Kids) > 0 {
		e.Progress.Children(of, pos.Output().Children)
	}
	return of
}

// tellRest reports where a child has come to rest; err is why it went no further.
func (e *Engine) tellRest(ctx context.Context, of StepInfo, k children.Kid, err error) {
	if e.Progress == nil || ctx.Err() != nil {
		return
	}
	at := k.Output()
	at.Status = protocol.StatusError
	if err == nil {
		if _, ended, lookErr := e.Lookup(ctx, k.ID); lookErr == nil && ended != nil {
			at.Status = ended.Status
		} else if out, lookErr := e.Show(ctx, k.ID); lookErr == nil {
			at.Status = out.Status
		}
	}
	e.Progress.Children(of, []protocol.ChildOutput{at})
}

// standing is the position of a thread that has children.
func (e *Engine) standing(ctx context.Context, thread string) (*status.Position, error) {
	pos, err := e.Stands(ctx, thread)
	if err == nil && pos.Next.Kind != moderator.Fan {
		pos.Kids = nil // another process has joined them meanwhile
	}
	return pos, err
}

// driveKid works on one child.
func (e *Engine) driveKid(ctx context.Context, k children.Kid, w Work) error {
	o := w.StepOptions
	o.Fresh, o.Cwd = false, ""
	_, err := e.below(k).drive(ctx, k.ID, nil, Work{Steps: UntilEnd, StepOptions: o})
	if err == nil {
		return nil
	}
	// Another process may have finished it meanwhile, or be about to.
	if errors.Is(err, &protocol.Error{Code: protocol.CodeTerminated}) {
		_, _ = e.WaitItself(ctx, k.ID)
	}
	for end := e.Env.Now().Add(e.grace() + settle); ; {
		if _, ended, lookErr := e.Lookup(context.WithoutCancel(ctx), k.ID); lookErr == nil && ended != nil {
			return nil
		}
		if !e.RunDir(k.ID).EndRequested() || e.Env.Now().After(end) || retry.Pause(ctx, retry.MinWait) != nil {
			return err
		}
	}
}

// inTurn is a progress that several threads report to, one at a time.
type inTurn struct {
	mu *sync.Mutex
	to Progress
}

// StepStarted implements [Progress].
func (p inTurn) StepStarted(s StepInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.StepStarted(s)
}

// Turn implements [Progress].
func (p inTurn) Turn(s StepInfo, t protocol.Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.Turn(s, t)
}

// Writing implements [Progress].
func (p inTurn) Writing(s StepInfo, t protocol.Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.Writing(s, t)
}

// Children implements [Progress].
func (p inTurn) Children(of StepInfo, stand []protocol.ChildOutput) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.Children(of, stand)
}

// StepEnded implements [Progress].
func (p inTurn) StepEnded(s StepInfo, out protocol.StepOutput, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.StepEnded(s, out, err)
}

// speakingInTurn makes the engine's progress safe for several threads at once.
func (e *Engine) speakingInTurn() *Engine {
	with := *e
	mu := &with.driven.mu
	if e.Progress != nil {
		with.Progress = inTurn{mu, e.Progress}
	}
	if e.Warn != nil {
		with.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			e.Warn(text)
		}
	}
	if e.Events != nil {
		with.Events = func(ev Event) {
			mu.Lock()
			defer mu.Unlock()
			e.Events(ev)
		}
	}
	if e.PutBack != nil {
		with.PutBack = func() (string, error) {
			mu.Lock()
			defer mu.Unlock()
			return e.PutBack()
		}
	}
	if e.began != nil {
		var once sync.Once
		with.began = func() { once.Do(e.began) }
	}
	return &with
}
