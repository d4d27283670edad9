package engine

import (
	"context"

	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
)

// Running is a thread that something works on. It needs no node to be read.
// Errors are *protocol.Error.
//
// A process that makes several steps works on its thread between them, too.
func (e *Engine) Running(ctx context.Context) ([]protocol.RunningThread, error) {
	running := []protocol.RunningThread{}
	var damaged error
	for h, err := range e.Heads.Heads(ctx) {
		if err != nil {
			damaged = err // it stands for one thread, and hides no other
			continue
		}
		dir := e.runDir(h.Thread)
		r := dir.Read()
		engine := r.Engine != 0 && e.locks().Held(ctx, h.Thread)
		if !engine && (!r.Unfinished(h.Hash) || !dir.Alive(r)) {
			continue
		}
		running = append(running, e.describe(ctx, h.Thread, r, engine))
	}
	e.nameKids(ctx, running)
	if damaged != nil {
		return running, fault.Of(damaged)
	}
	return running, nil
}

// nameKids adds to children how people name them.
func (e *Engine) nameKids(ctx context.Context, running []protocol.RunningThread) {
	all, _ := e.Heads.AllFacts(ctx) // without them each is named by its id
	labels := map[string]map[string]string{}
	for i := range running {
		r := &running[i]
		of := all[r.Thread].Parent
		if of == nil {
			continue
		}
		if labels[of.Thread] == nil {
			labels[of.Thread] = map[string]string{}
			if at, err := e.Show(ctx, of.Thread); err == nil {
				for _, c := range at.Children {
					labels[of.Thread][c.Thread] = c.Label
				}
			}
		}
		r.Label, r.Path = labels[of.Thread][r.Thread], of.Key
		for up := all[of.Thread].Parent; up != nil; of, up = up, all[up.Thread].Parent {
			r.Path = children.Address(up.Key, r.Path)
		}
		r.Path = children.Address(of.Thread, r.Path)
	}
}

// describe says who works on a thread: the engine, and the agent of its record.
func (e *Engine) describe(ctx context.Context, id string, r rundir.Record, engine bool) protocol.RunningThread {
	t := protocol.RunningThread{
		Thread: id, Workflow: r.Workflow, Role: r.Role, Agent: r.Agent, AgentPid: r.Pid, StartedAt: r.StartedAt,
	}
	if !engine { // it was killed, its agent lives on
		return t
	}
	t.Pid = r.Engine
	if who, err := e.locks().Holder(ctx, id); err == nil {
		t.Pid = who.Pid
	}
	return t
}
