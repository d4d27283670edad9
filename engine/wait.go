package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
)

// How often a thread in flight is looked at: soon at first, then rarely.
const (
	minWait = 10 * time.Millisecond
	maxWait = 250 * time.Millisecond
)

// Wait returns when nothing works on the thread any more, nor on its children: the agent
// has ended, and so has the process that started it, with all the steps that it was to
// make. Errors are *protocol.Error, or what ended ctx.
func (e *Engine) Wait(ctx context.Context, thread string) (protocol.StepOutput, error) {
	return e.waitWhile(ctx, thread, e.busyTogether)
}

// waitItself is [Engine.Wait] for a thread without its children.
func (e *Engine) waitItself(ctx context.Context, thread string) (protocol.StepOutput, error) {
	return e.waitWhile(ctx, thread, e.running)
}

func (e *Engine) waitWhile(ctx context.Context, thread string, busy func(context.Context, string) (bool, error)) (protocol.StepOutput, error) {
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		running, err := busy(ctx, thread)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return protocol.StepOutput{}, fault.Of(err)
		}
		if !running {
			return e.Show(ctx, thread)
		}
		if err := pause(ctx, wait); err != nil {
			return protocol.StepOutput{}, fault.Of(err)
		}
	}
}

// Busy reports whether anything works on a thread: what [Engine.Wait] waits for.
// Errors are *protocol.Error.
func (e *Engine) Busy(ctx context.Context, thread string) (bool, error) {
	busy, err := e.busyTogether(ctx, thread)
	if err != nil {
		return false, fault.Of(err)
	}
	return busy, nil
}

// busyTogether reports whether anything works on a thread or its children. Whoever drives
// them holds none of them for a moment, between two, so it is looked more than once.
func (e *Engine) busyTogether(ctx context.Context, id string) (bool, error) {
	const looks = 3
	for range looks {
		if busy, err := e.busyNow(ctx, id); busy || err != nil {
			return busy, err
		}
		// A thread that cannot be read has no children.
		if kids, err := e.Started(ctx, id); err != nil || len(kids) == 0 {
			return e.running(ctx, id)
		}
		if err := pause(ctx, maxWait); err != nil {
			return false, err
		}
	}
	return false, nil
}

// busyNow reports whether anything works on a thread or its children at the moment.
func (e *Engine) busyNow(ctx context.Context, id string) (bool, error) {
	if busy, err := e.running(ctx, id); busy || err != nil {
		return busy, err
	}
	kids, _ := e.Started(ctx, id)
	for _, k := range kids {
		if k.Ended {
			continue
		}
		if busy, err := e.busyNow(ctx, k.Thread); busy || err != nil {
			return busy, err
		}
	}
	return false, nil
}

// StartedChild is a child that has been started for the role that is next.
type StartedChild struct {
	Key    string
	Thread string
	Head   protocol.Hash
	Ended  bool
	Status protocol.Status // of one that has ended
}

// Started are the children of a thread that have been started for the role that is next,
// by their keys. Their nodes are not read. Errors are *protocol.Error.
func (e *Engine) Started(ctx context.Context, thread string) ([]StartedChild, error) {
	head, ended, err := e.lookup(ctx, thread)
	if err != nil || ended != nil {
		return nil, fault.OrNil(err)
	}
	w, err := e.workflowAt(ctx, head)
	if err != nil || !hasChildren(w) {
		return nil, fault.OrNil(err)
	}
	all, err := e.Heads.AllFacts(ctx)
	if all == nil {
		return nil, fault.OrNil(err)
	}
	var ids []string
	for id, f := range all {
		if f.Parent != nil && f.Parent.Thread == thread && f.Parent.Head == head {
			ids = append(ids, id)
		}
	}
	stand, err := children.Look(ctx, e.Heads, ids, nil)
	var kids []StartedChild
	for id, at := range stand {
		k := StartedChild{Key: all[id].Parent.Key, Thread: id, Head: at.Head}
		if at.End != nil {
			k.Ended, k.Status = true, at.End.Status
		}
		kids = append(kids, k)
	}
	slices.SortFunc(kids, func(a, b StartedChild) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Thread, b.Thread))
	})
	return kids, fault.OrNil(err)
}

// workflowAt is the workflow of the thread with a head.
func (e *Engine) workflowAt(ctx context.Context, head protocol.Hash) (protocol.Workflow, error) {
	t, err := thread.Open(ctx, e.nodes(), head)
	if err != nil {
		return protocol.Workflow{}, err
	}
	return e.workflow(ctx, t.Start.Workflow)
}

// running reports whether an agent is at work, or a process that makes steps.
func (e *Engine) running(ctx context.Context, id string) (bool, error) {
	head, _, err := e.lookup(ctx, id)
	if err != nil {
		return false, err
	}
	dir := e.runDir(id)
	r := dir.Read()
	return e.locks().Held(ctx, id) || e.orphan(ctx, id).pid != 0 || (r.Unfinished(head) && dir.Alive(r)), nil
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
