package engine

import (
	"context"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Show derives where a thread stands, active or ended, without any lock. A
// thread whose nodes are damaged has status corrupt; that is not an error.
// Errors are *protocol.Error.
func (e *Engine) Show(ctx context.Context, thread string) (protocol.StepOutput, error) {
	out, err := e.show(ctx, thread)
	for range maxLooks {
		if err != nil || out.Status != protocol.StatusIdle || !e.runDir(thread).Read().Between(out.Head) {
			break
		}
		// A loop may have made its last step while we looked.
		before := out.Head
		if out, err = e.show(ctx, thread); out.Head == before {
			break
		}
	}
	if err != nil {
		return out, fault.Of(err)
	}
	return out, nil
}

// maxLooks bounds how often a thread is looked at again that moves meanwhile.
const maxLooks = 5

func (e *Engine) show(ctx context.Context, thread string) (protocol.StepOutput, error) {
	head, ended, err := e.lookup(ctx, thread)
	if err != nil {
		return protocol.StepOutput{}, err
	}
	if ended != nil {
		out := e.showEnded(ctx, *ended)
		// What cannot be read any more is left out: the thread has ended all the same.
		if pos, err := e.position(ctx, thread, head); err == nil {
			at := pos.output()
			out.Message, out.Output = at.Message, at.Output
		}
		return out, nil
	}
	out, _, err := e.showActive(ctx, thread, head)
	return out, err
}

// showActive is what the nodes say, and on top of it what the last run says.
func (e *Engine) showActive(ctx context.Context, id string, head protocol.Hash) (protocol.StepOutput, *position, error) {
	pos, err := e.position(ctx, id, head)
	switch {
	case fault.IsDamage(err):
		return damaged(pos, head, err), pos, nil
	case err != nil:
		return damaged(pos, head, err), pos, err
	}
	out := pos.output()
	e.overlay(ctx, &out)
	if pos.facts.ParkedUntil > notParked && out.Status == protocol.StatusFailed && !pos.stuck {
		out.Status = protocol.StatusIdle // the time has come: what failed was no more than that it had not
	}
	return out, pos, nil
}

// showEnded needs no node but the workflow, and only for its name.
func (e *Engine) showEnded(ctx context.Context, ended heads.Ended) protocol.StepOutput {
	out := protocol.StepOutput{
		Thread: ended.Thread, Head: ended.Head, Workflow: ended.Workflow,
		Status: ended.Status, Done: true,
	}
	if w, err := e.workflow(ctx, ended.Workflow); err == nil {
		out.WorkflowName = w.Name
	}
	if ended.Status == protocol.StatusCompleted { // it can be resumed
		e.overlay(ctx, &out)
	}
	return out
}

// overlay adds what the last run from this head says: that it is alive, that it
// has left a result, or how it failed. A failed answer to a suspension leaves
// the thread suspended, and to its end ended; it can be given again.
func (e *Engine) overlay(ctx context.Context, out *protocol.StepOutput) {
	dir := e.runDir(out.Thread)
	r := dir.Read()
	switch {
	case r.Damaged: // how it ended nobody knows
		out.Error = &protocol.StepError{
			Message: "the record of its last run is damaged: " + dir.File(runfiles.RecordFile), Code: protocol.CodeCorrupt, Hint: "uwf thread diagnose " + out.Thread,
		}
	case r.Between(out.Head):
		// Only its lock tells a process that is about to go on from one that is dead.
		if out.Status == protocol.StatusIdle && e.locks().Held(ctx, out.Thread) {
			out.Status = protocol.StatusRunning
		}
		return
	case r.Head != out.Head:
		return
	case r.Status.InFlight() && dir.Alive(r):
		out.Status, out.CurrentRole, out.Agent = protocol.StatusRunning, &r.Role, r.Agent
		out.SuspendedRole, out.SuspendMessage, out.Question, out.Done = nil, nil, nil, false
	case r.Status.InFlight():
		_, out.Pending = dir.Finished()
	case r.Error != nil && r.Status != rundir.Stopped:
		out.Error = &protocol.StepError{Message: r.Error.Message, Code: r.Error.Code, Hint: "uwf thread step " + out.Thread}
		if out.Status == protocol.StatusSuspended || out.Done {
			out.Error.Hint = "uwf thread resume " + out.Thread
		}
		if r.StepHash != "" {
			out.Error.StepHash = &r.StepHash
		}
		if out.Status == protocol.StatusIdle {
			out.Status = protocol.StatusFailed
		}
	}
}

// damaged is the standing of a thread that could not be read further than to pos.
func damaged(pos *position, head protocol.Hash, err error) protocol.StepOutput {
	out := protocol.StepOutput{Thread: pos.id, Head: head, Status: protocol.StatusIdle, Error: fault.Step(err)}
	if fault.IsDamage(err) {
		out.Status = protocol.StatusCorrupt
	}
	if pos.thread != nil {
		out.Workflow, out.WorkflowName = pos.thread.Start.Workflow, pos.workflow.Name
	}
	return out
}
