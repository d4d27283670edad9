package status

import (
	"context"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
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
	if last.Agent == protocol.CommandAgent { // what it prints nobody reads any more
		then = " runs the command again"
	}
	return fault.Hinted(err, "uwf thread wait "+id+"; uwf thread resume "+id+then, "uwf thread stop "+id)
}

// clock shows a time in the user's zone.
func (r *Reader) clock(t time.Time) string {
	return t.In(r.Env.Now().Location()).Format(time.RFC3339)
}
