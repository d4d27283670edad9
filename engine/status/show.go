package status

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
func (r *Reader) Show(ctx context.Context, thread string) (protocol.StepOutput, error) {
	out, err := r.show(ctx, thread)
	if err == nil && out.Error == nil && out.Status != protocol.StatusRunning && r.CutOff(thread) {
		out.Error = &protocol.StepError{
			Message: "a change of its head and files was cut off", Code: protocol.CodeFailed, Hint: "uwf thread step " + thread + " settles it first",
		}
	}
	for range maxLooks {
		if err != nil || out.Status != protocol.StatusIdle || !r.RunDir(thread).Read().Between(out.Head) {
			break
		}
		// A loop may have made its last step while we looked.
		before := out.Head
		if out, err = r.show(ctx, thread); out.Head == before {
			break
		}
	}
	return out, fault.OrNil(err)
}

// maxLooks bounds how often a thread that keeps moving is read again.
const maxLooks = 5

func (r *Reader) show(ctx context.Context, thread string) (protocol.StepOutput, error) {
	head, ended, err := r.Lookup(ctx, thread)
	if err != nil {
		return protocol.StepOutput{}, err
	}
	if ended != nil {
		out := r.showEnded(ctx, *ended)
		// Whatever cannot be read any more is left out: the thread has ended all the same.
		if pos, err := r.Position(ctx, thread, head); err == nil {
			at := pos.Output()
			out.Message, out.Output = at.Message, at.Output
		}
		return out, nil
	}
	out, _, err := r.showActive(ctx, thread, head)
	return out, err
}

// showActive is what the nodes say, overlaid with what the last run says.
func (r *Reader) showActive(ctx context.Context, id string, head protocol.Hash) (protocol.StepOutput, *Position, error) {
	pos, err := r.Position(ctx, id, head)
	switch {
	case fault.IsDamage(err):
		return pos.Damaged(head, err), pos, nil
	case err != nil:
		return pos.Damaged(head, err), pos, err
	}
	out := pos.Output()
	r.overlay(ctx, &out)
	if pos.waits && out.Status == protocol.StatusError && !pos.stuck {
		out.Status = protocol.StatusIdle // the time has come: what failed was no more than that it had not
	}
	return out, pos, nil
}

// showEnded needs only the workflow's node, and only for its name.
func (r *Reader) showEnded(ctx context.Context, ended heads.Ended) protocol.StepOutput {
	out := protocol.StepOutput{
		Thread: ended.Thread, Head: ended.Head, Workflow: ended.Workflow,
		Status: ended.Status, Done: true,
	}
	if w, err := r.Workflow(ctx, ended.Workflow); err == nil {
		out.WorkflowName = w.Name
	}
	if ended.Status == protocol.StatusCompleted { // it can be resumed
		r.overlay(ctx, &out)
	}
	return out
}

// overlay adds what the last run from this head says: that it is alive, that it
// has left a result, or how it failed. A failed answer to a suspension leaves
// the thread suspended, and to its end ended; it can be given again.
func (r *Reader) overlay(ctx context.Context, out *protocol.StepOutput) {
	dir := r.RunDir(out.Thread)
	last := dir.Read()
	switch {
	case last.Damaged: // nobody knows how it ended
		out.Error = &protocol.StepError{
			Message: "the record of its last run is damaged: " + dir.File(runfiles.RecordFile), Code: protocol.CodeCorrupt, Hint: "uwf thread diagnose " + out.Thread,
		}
	case last.Between(out.Head):
		// Only the lock tells a process that is about to continue from a dead one.
		if out.Status == protocol.StatusIdle && r.Locker().Held(ctx, out.Thread) {
			out.Status = protocol.StatusRunning
		}
		return
	case last.Head != out.Head:
		return
	case last.Status.InFlight() && dir.Alive(last):
		out.Status, out.CurrentRole, out.Agent = protocol.StatusRunning, &last.Role, last.Agent
		out.SuspendedRole, out.SuspendMessage, out.Question, out.Done = nil, nil, nil, false
	case last.Status.InFlight():
		_, out.Pending = dir.Finished()
	case last.Error != nil && last.Status != rundir.Stopped:
		out.Error = &protocol.StepError{Message: last.Error.Message, Code: last.Error.Code, Hint: "uwf thread step " + out.Thread}
		if out.Status == protocol.StatusSuspended || out.Status == protocol.StatusRateLimited || out.Done {
			out.Error.Hint = fault.Resume(out.Thread, last.Error.Code)
		}
		if last.StepHash != "" {
			out.Error.StepHash = &last.StepHash
		}
		if out.Status == protocol.StatusIdle {
			out.Status = protocol.StatusError
		}
	}
}
