package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/queue"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
)

// A driver runs a thread and its children to their ends, with as many threads at once as there are slots. It
// keeps no important state: another driver can continue after one was killed, and the threads' locks keep two
// drivers apart.

// driven is the state shared by the threads of one run.
type driven struct {
	begun  time.Time
	places chan struct{} // one slot per working thread; a thread that waits for its children has none
}

// driving returns an engine that runs a thread with all its children.
func (e *Engine) driving(w Work) *Engine {
	if e.driven != nil {
		return e
	}
	n := w.Parallel
	if n <= 0 {
		n = 2 * runtime.NumCPU()
	}
	with := e.reading(e.Reader.RememberingCosts())
	with.driven = &driven{begun: e.Reader.Env.Now(), places: make(chan struct{}, n)}
	return with.serialized()
}

// drive works on a thread, and on its children until the thread itself can continue. h is the locked thread,
// or nil if it is not locked yet.
func (e *Engine) drive(ctx context.Context, thread string, h *lockedThread, w Work) (outs []protocol.StepOutput,
	err error) {
	for first := true; ; first = false {
		d, err := e.turn(ctx, thread, h, w, first)
		h = nil
		if err != nil || d.hand == nil && !d.drive {
			return append(outs, d.outs...), err
		}
		outs = append(outs, steps(d.outs)...)
		if d.hand != nil {
			below, err := e.handOn(ctx, *d.hand, w)
			if err != nil || w.Steps != UntilEnd {
				return append(outs, below...), err
			}
		} else if err := e.driveChildren(ctx, thread, w); err != nil {
			return outs, fault.Ended(ctx, err)
		} else {
			w.Wake = false
		}
		w.Do, w.Cwd, w.Expect, w.Answer, w.Fresh, w.KeepFiles = DoStep, "", "", nil, false, false
	}
}

// handOn passes a user's prompt or answer to the child that asked for it.
func (e *Engine) handOn(ctx context.Context, k children.Child, w Work) ([]protocol.StepOutput, error) {
	o := w.StepOptions
	o.Cwd = ""
	below := Work{Do: w.Do, Steps: w.Steps, Prompt: w.Prompt, StepOptions: o}
	if w.Answer != nil {
		answer := *w.Answer
		answer.At = k.Head
		below.Answer = &answer
	}
	return e.below(k).drive(ctx, k.ID, nil, below)
}

// below returns an engine that works on child k.
func (e *Engine) below(k children.Child) *Engine {
	with := *e
	with.path, with.label = children.Below(e.path, e.label, k.Key, children.LabelOf(k.Child))
	return &with
}

// steps returns the outputs that report a step.
func steps(outs []protocol.StepOutput) []protocol.StepOutput {
	var made []protocol.StepOutput
	for _, out := range outs {
		if out.StepHash != "" {
			made = append(made, out)
		}
	}
	return made
}

// turn works on a thread, in a slot and under the thread's lock. If another process works on it already, that
// is an error only on the first pass.
func (e *Engine) turn(ctx context.Context, thread string, h *lockedThread, w Work, first bool) (d did, err error) {
	for {
		if err := e.takePlace(ctx); err != nil {
			if h != nil {
				h.release()
			}
			return d, err
		}
		if h == nil {
			h, err = e.lock(ctx, thread)
		}
		switch {
		case err != nil && (first && e.path == "" || !isBusy(err)):
			e.leavePlace()
			return d, err
		case err == nil && !first && h.ended != nil && h.ended.Status.AtEnd():
			h.release() // another driver finished it
			e.leavePlace()
			out, err := e.Reader.Show(ctx, thread)
			return did{outs: []protocol.StepOutput{out}}, err
		case err == nil:
			d, err = e.do(ctx, h, w)
			h.release()
			if e.path == "" || !isBusy(err) || len(d.outs) > 0 {
				e.leavePlace()
				return d, err
			}
		}
		// The agent of a killed driver is still running: wait for it and adopt its result.
		e.leavePlace()
		if h = nil; len(d.outs) == 0 {
			// The process that started this worker also holds the lock, until this event.
			e.report(Event{Kind: AgentStarted, Step: StepInfo{Thread: thread, Path: e.path, Label: e.label}})
			if _, err := e.Reader.WaitItself(ctx, thread); err != nil {
				return d, err
			}
		}
	}
}

// isBusy reports whether another process is working on the thread itself, so that waiting for it helps.
func isBusy(err error) bool {
	return fault.Is(err, protocol.CodeLocked) && !errors.Is(err, errParentOpen)
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

// driveChildren works on all children of a thread that have not ended, until each ends, needs a person, or
// fails. A failing child doesn't stop the others unless the machine is at fault.
func (e *Engine) driveChildren(ctx context.Context, thread string, w Work) error {
	dir := e.Reader.RunDir(thread)
	if err := dir.UnblockChildren(); err != nil {
		return err
	}
	pos, err := e.waitingParent(ctx, thread)
	if err != nil {
		return err
	}
	of := e.reportChildren(pos)
	most := cap(e.driven.places)
	if p := pos.Workflow.Roles[pos.Next.Role].Parallel; p > 0 {
		most = p
	}
	failed, mu := map[string]error{}, sync.Mutex{}
	due := slices.DeleteFunc(slices.Clone(pos.Children), func(k children.Child) bool {
		return k.Ended != nil && !k.Open || k.Status() == protocol.StatusSuspended || k.Head == ""
	})
	var stopped atomic.Bool
	queue.Work(ctx, most, due, func(k children.Child) bool {
		if dir.ChildrenBlocked() {
			stopped.Store(true)
			return false
		}
		err := e.driveChild(ctx, k, w)
		e.reportStopped(ctx, of, k, err)
		if err != nil {
			mu.Lock()
			failed[k.ID] = err
			mu.Unlock()
		}
		return !protocol.OfMachine(err)
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case stopped.Load() || dir.ChildrenBlocked():
		return fault.New(protocol.CodeTerminated, "thread %s was stopped while its children were running",
			thread).Because("stopped", "thread", thread, "again", protocol.AgainResume)
	}
	failures := children.Failures{Place: pos.Place(), Of: len(pos.Children)}
	for _, k := range pos.Children { // the first one is named, whichever failed first
		if err := failed[k.ID]; err != nil {
			failures.Add(k, err)
		}
	}
	return failures.Err()
}

// reportChildren reports the state of a position's children, and returns the step they belong to.
func (e *Engine) reportChildren(pos *status.Position) StepInfo {
	of := StepInfo{Thread: pos.ID, Path: e.path, Label: e.label, Number: pos.Thread.Len() + 1, Role: pos.Next.Role,
		Started: e.Reader.Env.Now()}
	if len(pos.Children) > 0 {
		e.report(Event{Kind: Children, Step: of, Workflow: pos.Workflow.Name, Children: pos.Output().Children})
	}
	return of
}

// reportStopped reports that a child has stopped; err is the reason, if it failed.
func (e *Engine) reportStopped(ctx context.Context, of StepInfo, k children.Child, err error) {
	if e.Events == nil || ctx.Err() != nil {
		return
	}
	at := k.Output()
	at.Status = protocol.StatusError
	if err == nil {
		if _, ended, lookErr := e.Reader.Lookup(ctx, k.ID); lookErr == nil && ended != nil {
			at.Status = ended.Status
		} else if out, lookErr := e.Reader.Show(ctx, k.ID); lookErr == nil {
			at.Status = out.Status
		}
	}
	e.report(Event{Kind: Children, Step: of, Children: []protocol.ChildOutput{at}})
}

// waitingParent returns the position of a thread that waits for its children.
func (e *Engine) waitingParent(ctx context.Context, thread string) (*status.Position, error) {
	pos, err := e.Reader.HeadPosition(ctx, thread)
	if err == nil && pos.Next.Kind != moderator.Fan {
		pos.Children = nil // another process has joined them
	}
	return pos, err
}

// driveChild runs one child to its end.
func (e *Engine) driveChild(ctx context.Context, k children.Child, w Work) error {
	o := w.StepOptions
	o.Fresh, o.Cwd = false, ""
	_, err := e.below(k).drive(ctx, k.ID, nil, Work{Steps: UntilEnd, StepOptions: o})
	if err == nil {
		return nil
	}
	// Another process may have finished the child, or be about to.
	if fault.Is(err, protocol.CodeTerminated) {
		_, _ = e.Reader.WaitItself(ctx, k.ID)
	}
	for end := e.Reader.Env.Now().Add(e.grace() + settle); ; {
		if _, ended, lookErr := e.Reader.Lookup(context.WithoutCancel(ctx), k.ID); lookErr == nil && ended != nil {
			return nil
		}
		if !e.Reader.RunDir(k.ID).EndRequested() || e.Reader.Env.Now().After(end) || retry.Pause(ctx, retry.MinWait) != nil {
			return err
		}
	}
}

// joinChildren makes a step of the results of all children.
func (a *attempt) joinChildren(ctx context.Context) (protocol.Result, error) {
	var none protocol.Result
	if err := a.childrenAtRest(ctx); err != nil {
		return none, err
	}
	b := a.reader.Batch()
	role, err := a.judge(ctx, b)
	if err != nil {
		return none, err
	}
	results := make([]moderator.Result, len(a.pos.Children))
	made := own{agent: protocol.JoinAgent, by: protocol.ByValue, children: make([]protocol.ChildEnded, len(a.pos.Children))}
	var all protocol.Totals
	for i, k := range a.pos.Children {
		var broke bool // the child failed, and the role fails with it
		results[i], broke, err = a.reader.Result(ctx, a.pos.Workflow, a.task.role, k)
		if err == nil && broke {
			err = a.unjoined(fault.New(protocol.CodeAgent, "it failed: %s", results[i].Error))
		}
		if err != nil {
			return none, fmt.Errorf("child %s: %w", k.Key, err)
		}
		sum, err := a.reader.Cost(ctx, k.ID, k.Ended.Head)
		if err != nil {
			return none, fmt.Errorf("child %s: %w", k.Key, err)
		}
		all.Spend(sum.Usage)
		made.children[i] = protocol.ChildEnded{Key: k.Key, Head: k.Ended.Head, Status: k.Ended.Status,
			Usage: budget.CostOf(sum)}
	}
	made.usage = all.Usage
	joined := worktree.Joined{Keeper: a.e.Files(), Thread: a.locked.id, Chain: a.pos.Thread, Role: a.task.role,
		Children: a.pos.Children}
	if a.pos.Workflow.Roles[a.task.role].Workspace == worktree.InWorktree {
		if err := joined.Find(ctx, results); err != nil {
			return none, err
		}
	}
	var merged protocol.Tree
	var conflicts []string
	if a.pos.Workflow.Roles[a.task.role].Merge {
		if merged, conflicts, err = joined.Merge(ctx, a.kept); err != nil {
			return none, err
		}
	}
	value, err := a.joinedValue(ctx, role, results, conflicts)
	if err != nil {
		return none, err
	}
	made.output, err = extract.Value(ctx, value, role)
	var unfit *extract.InvalidError
	if errors.As(err, &unfit) {
		problems := &UnfitError{Problems: unfit.Problems}
		return none, a.unjoined(fmt.Errorf("the joined output of role %q does not match its schema: %s%w", a.task.role, unfit.Reason,
			problems))
	}
	if err != nil {
		return none, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return none, err
	}
	made.answer = string(text)
	if err := a.lay(ctx, merged); err != nil {
		return none, err
	}
	return a.submit(ctx, b, made)
}

// childrenAtRest returns an error if a child is being retried. Our run is open, so no further retry can
// start; this check finds one that has started already. If only the lock is held, another driver may have just
// recorded the child's end.
func (a *attempt) childrenAtRest(ctx context.Context) error {
	end := a.reader.Env.Now().Add(settle)
	for _, k := range a.pos.Children {
		if k.Ended.Status == protocol.StatusCancelled {
			continue
		}
		for a.reader.Locker().Held(ctx, k.ID) || a.reader.IsOpen(k.ID, k.Ended.Head) {
			if a.reader.IsOpen(k.ID, k.Ended.Head) || a.reader.Env.Now().After(end) {
				return fault.New(protocol.CodeLocked, "child %s of role %q is being retried", k.Key,
					a.task.role).Because("child-replayed", "thread", a.locked.id)
			}
			if err := retry.Pause(ctx, retry.MinWait); err != nil {
				return err
			}
		}
	}
	return nil
}

// lay replaces the thread's files by the merged files of its children. If merged is "", it does nothing.
func (a *attempt) lay(ctx context.Context, merged protocol.Tree) error {
	if merged == "" || merged == a.kept.Spec.Tree {
		return nil
	}
	i := rundir.Intent{Kind: rundir.Prepared, HeadFrom: a.locked.head, TreeFrom: a.kept.Spec.Tree, TreeTo: merged}
	if err := a.e.Files().Claim(a.kept, a.locked.id); err != nil {
		return err
	}
	if err := a.dir.SetIntent(i); err != nil {
		return err
	}
	if err := a.e.Files().WriteMerged(ctx, a.kept, merged); err != nil {
		return a.retried(err)
	}
	return nil
}

// joinedValue returns the joined result of all children.
func (a *attempt) joinedValue(ctx context.Context, role extract.Role, results []moderator.Result,
	conflicts []string) (any, error) {
	if len(conflicts) > 0 {
		return moderator.Conflicted(conflicts), nil
	}
	state, err := a.joinState(ctx)
	if err != nil {
		return nil, err
	}
	value, err := moderator.Join(ctx, state, a.task.role, results, !children.IsJoinSchema(role.Schema))
	if err != nil {
		return nil, a.unjoined(err)
	}
	return value, nil
}

// joinState returns the state that the children were created from, which their results are joined into.
func (a *attempt) joinState(ctx context.Context) (moderator.State, error) {
	if !a.pos.Again {
		return a.pos.State, nil
	}
	return a.reader.StateBefore(ctx, a.pos)
}

func (a *attempt) unjoined(err error) error {
	a.joinFailed = true
	code := protocol.CodeInvalid
	if e := new(protocol.Error); errors.As(err, &e) {
		code = e.Code
	}
	return (&protocol.Error{Code: code, Message: err.Error(), Err: err}).Because("not-joined",
		"thread", a.locked.id, "again", a.again())
}

// Ticked is the result of [Engine.Tick] for one thread.
type Ticked struct {
	Thread string              `json:"thread"`
	Output protocol.StepOutput `json:"output"`
	Error  *protocol.StepError `json:"error,omitempty"`
}

// Tick makes one step of every thread that is due, up to parallel at once. It calls each after each step,
// never concurrently; each can be nil. Threads that another process is working on are skipped. If a step
// fails because of this machine, Tick starts no further step: it would fail as well, and its thread would
// wait for a person. A thread's own failure is passed to each; the returned error is about listing the
// threads. Errors are *protocol.Error.
func (e *Engine) Tick(ctx context.Context, parallel int, o StepOptions, each func(Ticked)) (err error) {
	defer fault.Coded(&err)
	if err := e.Reader.MayWrite(); err != nil {
		return err
	}
	e = e.serialized()
	due, err := e.Reader.Due(ctx)
	if len(due) == 0 {
		return err
	}
	// Start with the threads of killed engines: their agents' results may report that an account is limited.
	var left, rest []string
	for _, id := range due {
		if e.Reader.RunDir(id).Read().Status.InFlight() {
			left = append(left, id)
		} else {
			rest = append(rest, id)
		}
	}
	due = append(left, rest...)
	var mu sync.Mutex
	broken := false
	waiting := queue.Work(ctx, parallel, due, func(id string) bool {
		t, ok, err := e.tickOne(ctx, id, o)
		mu.Lock()
		defer mu.Unlock()
		broken = broken || protocol.OfMachine(err)
		if ok && each != nil {
			each(t)
		}
		return !broken
	})
	if broken && waiting > 0 {
		e.warn(fmt.Sprintf("something is missing on this machine; skipping %d more threads", waiting))
	}
	return errors.Join(err, context.Cause(ctx))
}

func (e *Engine) tickOne(ctx context.Context, id string, o StepOptions) (t Ticked, ok bool, err error) {
	o.due = true
	outs, err := e.Do(ctx, id, Work{Steps: 1, StepOptions: o})
	if len(outs) == 0 && err == nil {
		return t, false, nil // it is no longer due
	}
	var out protocol.StepOutput
	if len(outs) > 0 {
		out = outs[0]
	} else { // a second error adds nothing to the first
		out, _ = e.Reader.Show(context.WithoutCancel(ctx), id)
	}
	t = Ticked{Thread: id, Output: out}
	if err != nil {
		c := fault.Of(err)
		_, ended, _ := e.Reader.Lookup(ctx, id)
		others := out.StepHash == "" && ended != nil
		if others || c.Code == protocol.CodeLocked || errors.Is(err, heads.ErrNoThread) {
			return t, false, err
		}
		t.Error = fault.Step(c)
		t.Error.Advise(e.Reader.Hints)
	}
	return t, true, err
}
