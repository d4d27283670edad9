package status

import (
	"context"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/retry"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Running is a thread that something works on. It needs no node to be read.
// Errors are *protocol.Error.
//
// A process that makes several steps works on its thread between them, too.
func (r *Reader) Running(ctx context.Context) ([]protocol.RunningThread, error) {
	running := []protocol.RunningThread{}
	var damaged error
	for h, err := range r.Heads.Heads(ctx) {
		if err != nil {
			damaged = err // it stands for one thread, and hides no other
			continue
		}
		dir := r.RunDir(h.Thread)
		last := dir.Read()
		engine := last.Engine != 0 && r.Locker().Held(ctx, h.Thread)
		if !engine && (!last.Unfinished(h.Hash) || !dir.Alive(last)) {
			continue
		}
		running = append(running, r.describe(ctx, h.Thread, last, engine))
	}
	r.nameKids(ctx, running)
	if damaged != nil {
		return running, fault.Of(damaged)
	}
	return running, nil
}

// nameKids adds to children how people name them.
func (r *Reader) nameKids(ctx context.Context, running []protocol.RunningThread) {
	all, _ := r.Heads.AllFacts(ctx) // without them each is named by its id
	labels := map[string]map[string]string{}
	for i := range running {
		it := &running[i]
		of := all[it.Thread].Parent
		if of == nil {
			continue
		}
		if labels[of.Thread] == nil {
			labels[of.Thread] = map[string]string{}
			if at, err := r.Show(ctx, of.Thread); err == nil {
				for _, c := range at.Children {
					labels[of.Thread][c.Thread] = c.Label
				}
			}
		}
		it.Label, it.Path = labels[of.Thread][it.Thread], of.Key
		for up := all[of.Thread].Parent; up != nil; of, up = up, all[up.Thread].Parent {
			it.Path = children.Address(up.Key, it.Path)
		}
		it.Path = children.Address(of.Thread, it.Path)
	}
}

// describe says who works on a thread: the engine, and the agent of its record.
func (r *Reader) describe(ctx context.Context, id string, last rundir.Record, engine bool) protocol.RunningThread {
	t := protocol.RunningThread{
		Thread: id, Workflow: last.Workflow, Role: last.Role, Agent: last.Agent, AgentPid: last.Pid, StartedAt: last.StartedAt,
	}
	if !engine { // it was killed, its agent lives on
		return t
	}
	t.Pid = last.Engine
	if who, err := r.Locker().Holder(ctx, id); err == nil {
		t.Pid = who.Pid
	}
	return t
}

// HeldBy is the error that says who holds a thread's lock.
func (r *Reader) HeldBy(ctx context.Context, id string) error {
	err := fault.New(protocol.CodeLocked, "thread %s is being stepped by another process", id)
	if who, noteErr := r.Locker().Holder(ctx, id); noteErr == nil {
		err = fault.New(protocol.CodeLocked, "thread %s is being stepped by pid %d since %s", id, who.Pid, r.clock(who.Since))
		if proc.Stopped(who.Pid) {
			err.Message += ", which is suspended"
			err = fault.Hinted(err, fmt.Sprintf("kill -CONT %d resumes it", who.Pid))
		}
	}
	return fault.Hinted(err, "uwf thread wait "+id, "uwf thread stop "+id)
}

// Outlived is the error that says that an agent has outlived the process that started it.
func (r *Reader) Outlived(id string, last rundir.Record) error {
	err := fault.New(protocol.CodeLocked, "an agent still works on thread %s", id)
	if last.Pid != 0 {
		err = fault.New(protocol.CodeLocked, "agent %s (pid %d) still works on thread %s since %s; the process that started it is gone",
			last.Agent, last.Pid, id, r.clock(time.UnixMilli(last.StartedAt)))
	}
	then := " uses its result"
	if last.Agent == protocol.CommandAgent && !runfiles.Dir(r.RunDir(id).Path).Outlasts() { // nobody sees how it ends
		then = " runs the command again"
	}
	return fault.Hinted(err, "uwf thread wait "+id+"; uwf thread resume "+id+then, "uwf thread stop "+id)
}

// clock shows a time in the user's zone.
func (r *Reader) clock(t time.Time) string {
	return t.In(r.Env.Now().Location()).Format(time.RFC3339)
}

// Wait returns when nothing works on the thread any more, nor on its children: the agent
// has ended, and so has the process that started it, with all the steps that it was to
// make. Errors are *protocol.Error, or what ended ctx.
func (r *Reader) Wait(ctx context.Context, thread string) (protocol.StepOutput, error) {
	return r.waitWhile(ctx, thread, r.busyTogether)
}

// WaitItself is [Reader.Wait] for a thread without its children.
func (r *Reader) WaitItself(ctx context.Context, thread string) (protocol.StepOutput, error) {
	return r.waitWhile(ctx, thread, r.running)
}

func (r *Reader) waitWhile(ctx context.Context, thread string, busy func(context.Context, string) (bool, error)) (protocol.StepOutput, error) {
	for wait := retry.MinWait; ; wait = min(2*wait, retry.MaxWait) {
		running, err := busy(ctx, thread)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return protocol.StepOutput{}, fault.Of(err)
		}
		if !running {
			return r.Show(ctx, thread)
		}
		if err := retry.Pause(ctx, wait); err != nil {
			return protocol.StepOutput{}, fault.Of(err)
		}
	}
}

// Busy reports whether anything works on a thread: what [Reader.Wait] waits for.
// Errors are *protocol.Error.
func (r *Reader) Busy(ctx context.Context, thread string) (bool, error) {
	busy, err := r.busyTogether(ctx, thread)
	return busy, fault.OrNil(err)
}

// busyTogether reports whether anything works on a thread or its children. Whoever drives
// them holds none of them for a moment, between two, so it is looked more than once.
func (r *Reader) busyTogether(ctx context.Context, id string) (bool, error) {
	const looks = 3
	for range looks {
		if busy, err := r.busyNow(ctx, id); busy || err != nil {
			return busy, err
		}
		// A thread that cannot be read has no children.
		if kids, err := r.Started(ctx, id); err != nil || len(kids) == 0 {
			return r.running(ctx, id)
		}
		if err := retry.Pause(ctx, retry.MaxWait); err != nil {
			return false, err
		}
	}
	return false, nil
}

// busyNow reports whether anything works on a thread or its children at the moment.
func (r *Reader) busyNow(ctx context.Context, id string) (bool, error) {
	if busy, err := r.running(ctx, id); busy || err != nil {
		return busy, err
	}
	kids, _ := r.Started(ctx, id)
	for _, k := range kids {
		if k.Ended {
			continue
		}
		if busy, err := r.busyNow(ctx, k.Thread); busy || err != nil {
			return busy, err
		}
	}
	return false, nil
}

// running reports whether an agent is at work, or a process that makes steps.
func (r *Reader) running(ctx context.Context, id string) (bool, error) {
	head, _, err := r.Lookup(ctx, id)
	if err != nil {
		return false, err
	}
	dir := r.RunDir(id)
	last := dir.Read()
	return r.Locker().Held(ctx, id) || locker.Orphan(ctx, r.Locker(), id).Pid != 0 || (last.Unfinished(head) && dir.Alive(last)), nil
}

// NotParked takes the place of a time that has passed: a field of the facts that is not
// set changes nothing.
const NotParked = 1

// IsParked reports whether a thread waits, at a head, for a provider to grant more, whether or not
// the time has come. What was noted at another head is history.
func IsParked(facts heads.Facts, head protocol.Hash) bool {
	return facts.ParkedUntil > NotParked && (facts.ParkedAt == "" || facts.ParkedAt == head)
}

// longestPark is beyond what anybody waits for: a clock that was set back makes no more
// of a time that has been kept.
const longestPark = 32 * 24 * time.Hour

// ParkedUntil is until when a thread is parked, in ms; 0: it is not.
func (r *Reader) ParkedUntil(facts heads.Facts) int64 {
	if left := facts.ParkedUntil - r.Env.Now().UnixMilli(); left <= 0 || left > longestPark.Milliseconds() {
		return 0
	}
	return facts.ParkedUntil
}

// AwaitParked waits until a thread that is parked may go on. The clock may be set
// meanwhile, so it is asked again and again.
func (r *Reader) AwaitParked(ctx context.Context, thread string) error {
	for {
		at, err := r.Show(ctx, thread) // the time may be that of its children
		if err != nil || at.Status != protocol.StatusRateLimited || at.RateLimitedUntil == nil {
			return fault.OrNil(err)
		}
		wait := min(time.UnixMilli(*at.RateLimitedUntil).Sub(r.Env.Now())+time.Millisecond, time.Minute)
		if err := retry.Pause(ctx, wait); err != nil {
			return fault.Ended(ctx, err)
		}
	}
}
