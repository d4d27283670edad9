package status

import (
	"context"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Show returns the state of a thread, active or ended, without taking a lock. A thread with damaged nodes has
// status corrupt and no error. Errors are *protocol.Error.
func (r *Reader) Show(ctx context.Context, thread string) (protocol.StepOutput, error) {
	out, err := r.show(ctx, thread)
	if err == nil && out.Error == nil && out.Status != protocol.StatusRunning && r.CutOff(thread) {
		out.Error = &protocol.StepError{
			Message: "moving it to another step was interrupted", Code: protocol.CodeFailed,
			Reasons: []protocol.Reason{protocol.Why("unsettled", "thread", thread)},
		}
		out.Error.Advise(r.Hints)
	}
	for range maxLooks {
		if err != nil || out.Status != protocol.StatusIdle || !r.RunDir(thread).Read().Between(out.Head) {
			break
		}
		// The thread may have moved while it was read.
		before := out.Head
		if out, err = r.show(ctx, thread); out.Head == before {
			break
		}
	}
	return out, fault.OrNil(err)
}

// maxLooks limits how often a moving thread is read again.
const maxLooks = 5

func (r *Reader) show(ctx context.Context, thread string) (protocol.StepOutput, error) {
	head, ended, err := r.Lookup(ctx, thread)
	if err != nil {
		return protocol.StepOutput{}, err
	}
	if ended != nil {
		out, _ := r.showEnded(ctx, *ended)
		// Omit what is unreadable: the thread has ended anyway.
		if pos, err := r.Position(ctx, thread, head); err == nil {
			at := pos.Output()
			out.Message, out.Output = at.Message, at.Output
		}
		return out, nil
	}
	out, _, err := r.showActive(ctx, thread, head)
	return out, err
}

// showActive combines the state from the nodes with the last run.
func (r *Reader) showActive(ctx context.Context, id string,
	head protocol.Hash) (protocol.StepOutput, *Position, error) {
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
		out.Status = protocol.StatusIdle // the limit has reset, which was the only reason for the failure
	}
	return out, pos, nil
}

// showEnded reads only the workflow's node, for its name. It reports whether the run directory has nothing to add.
func (r *Reader) showEnded(ctx context.Context, ended heads.Ended) (out protocol.StepOutput, quiet bool) {
	out = protocol.StepOutput{
		Thread: ended.Thread, Head: ended.Head, Workflow: ended.Workflow,
		Status: ended.Status, Done: true,
	}
	if w, err := r.Workflow(ctx, ended.Workflow); err == nil {
		out.WorkflowName = w.Name
	}
	return out, !ended.Status.AtEnd() || r.overlay(ctx, &out) // it can be resumed
}

// overlay adds the state of the last run from this head: running, pending, or failed. If the run failed to
// answer a suspension or to reopen an ended thread, the thread stays suspended or ended, and the user can try
// again. It returns true if the run directory has nothing to add until it changes.
func (r *Reader) overlay(ctx context.Context, out *protocol.StepOutput) (quiet bool) {
	if r.nothingToAdd(out.Thread) {
		out.Error.Advise(r.Hints)
		return true
	}
	dir := r.RunDir(out.Thread)
	last := dir.Read()
	defer func() { out.Error.Advise(r.Hints) }()
	switch {
	case last.Damaged: // its outcome is unknown
		out.Error = &protocol.StepError{
			Message: "the record of its last run is damaged: " + dir.File(runfiles.RecordFile), Code: protocol.CodeCorrupt,
			Reasons: []protocol.Reason{protocol.Why("record-damaged", "thread", out.Thread)},
		}
	case last.Between(out.Head):
		// Only the lock distinguishes a process that is about to continue from a dead one.
		if out.Status == protocol.StatusIdle && r.Locker().Held(ctx, out.Thread) {
			out.Status = protocol.StatusRunning
		}
	case last.Head != out.Head:
		return true
	case last.Status.InFlight() && dir.Alive(last):
		out.Status, out.CurrentRole, out.Agent = protocol.StatusRunning, protocol.NullString(last.Role), last.Agent
		out.SuspendedRole, out.SuspendMessage, out.Question, out.Done = "", "", nil, false
	case last.Status.InFlight():
		_, out.Pending = dir.Finished()
	case last.Error != nil && last.Status != rundir.Stopped:
		again := protocol.AgainResume
		if last.Replaces {
			again = protocol.AgainRetry
		}
		out.Error = &protocol.StepError{Message: last.Error.Message, Code: last.Error.Code,
			Reasons: []protocol.Reason{protocol.Why("last-try-failed", "thread", out.Thread, "again", again)}}
		if out.Status == protocol.StatusSuspended || out.Status == protocol.StatusRateLimited || out.Done {
			out.Error.Reasons = fault.Resume(out.Thread, last.Error.Code)
		}
		if last.StepHash != "" {
			out.Error.StepHash = protocol.NullHash(last.StepHash)
		}
		if out.Status == protocol.StatusIdle {
			out.Status = protocol.StatusError
		}
	}
	return false
}

// Output returns the position as the command line prints it.
func (p *Position) Output() protocol.StepOutput {
	out := protocol.StepOutput{
		Thread: p.ID, Head: p.Thread.Head, Status: protocol.StatusIdle,
		Workflow: p.Thread.Start.Workflow, WorkflowName: p.Workflow.Name,
	}
	if p.State.Last != nil {
		out.Output = p.State.Last.Output
	}
	switch {
	case p.Problem == nil && p.Parked > 0:
		role, until := p.Next.Role, p.Parked
		out.Status, out.CurrentRole, out.RateLimitedUntil = protocol.StatusRateLimited, protocol.NullString(role), &until
	case p.Problem == nil && p.Next.Kind == moderator.Suspend && p.Next.Cause != moderator.ByBudget && p.waits:
		role := p.Next.Role // the limit has reset
		out.CurrentRole = protocol.NullString(role)
	case p.Problem != nil:
		out.Error = fault.Step(p.Explain())
		if p.stuck {
			out.Status = protocol.StatusError
		}
	case p.Next.Kind == moderator.Run:
		role := p.Next.Role // copy it, so that the output doesn't keep the position in memory
		out.CurrentRole = protocol.NullString(role)
	case p.Next.Kind == moderator.Fan:
		role := p.Next.Role
		out.CurrentRole, out.Parallel = protocol.NullString(role), p.Workflow.Roles[role].Parallel
		p.Children.Summarize(p.Place(), &out)
	case p.Next.Kind == moderator.End: // also before it is archived
		if out.Status, out.Message = protocol.StatusCompleted, p.Next.Prompt; p.Next.Failed {
			out.Status = protocol.StatusFailed
		}
	case p.Next.Kind == moderator.Suspend:
		out.Status = protocol.StatusSuspended
		role, prompt := p.Next.Role, p.Next.Prompt
		out.SuspendedRole, out.SuspendMessage = protocol.NullString(role), protocol.NullString(prompt)
		switch {
		case p.Next.Cause == moderator.ByLimit:
		case p.Next.Cause == moderator.ByBudget, p.ofRun:
			out.Error = &protocol.StepError{Code: protocol.CodeLimit, Message: prompt, Reasons: p.limitReached()}
		case p.UsedUp != "":
			out.Error = &protocol.StepError{Code: protocol.CodeLimit, Message: prompt,
				Reasons: []protocol.Reason{protocol.Why("step-limit-reached", "thread", p.ID)}}
		default:
			out.Question = &protocol.Question{Role: role, Text: prompt, Schema: p.Form}
		}
	}
	out.Error.Advise(p.hints)
	return out
}

// Explain returns the error for a position without a decision. The graph and the output cannot be changed, so
// the only remedy is to retry the last step.
func (p *Position) Explain() *protocol.Error {
	err := fault.Of(p.Problem)
	if !p.stuck {
		return err
	}
	role, previous := "", ""
	if last := p.Thread.Last; last != nil {
		previous = string(p.Previous())
		if !p.Workflow.Roles[last.Role].Person {
			role = last.Role
		}
	}
	err = &protocol.Error{Code: err.Code, Message: err.Message, Err: err}
	return err.Because("stuck", "thread", p.ID, "role", role, "previous", previous)
}

// Previous returns the node before the thread's last step.
func (p *Position) Previous() protocol.Hash {
	if prev := p.Thread.Last.Prev; prev != nil {
		return *prev
	}
	return p.Thread.StartHash
}

// Damaged returns the output for a thread that could only be read up to this position.
func (p *Position) Damaged(head protocol.Hash, err error) protocol.StepOutput {
	out := protocol.StepOutput{Thread: p.ID, Head: head, Status: protocol.StatusIdle, Error: fault.Step(err)}
	if fault.IsDamage(err) {
		out.Status = protocol.StatusCorrupt
	}
	if p.Thread != nil {
		out.Workflow, out.WorkflowName = p.Thread.Start.Workflow, p.Workflow.Name
	}
	return out
}

// Dir returns the thread's directory: the one in its start node, unless a user has chosen another.
func (p *Position) Dir() string {
	if p.Root != "" {
		return p.Root
	}
	return p.Thread.Start.Cwd
}

// Here translates a directory recorded in a step if the thread has moved since, for example because the step
// was made on another machine.
func (p *Position) Here(dir string) string {
	if p.Root == "" || p.Root == p.Thread.Start.Cwd || dir == "" {
		return dir
	}
	if _, ok := cwd.Below(p.Root, dir); ok {
		return dir
	}
	if rel, ok := cwd.Below(p.Thread.Start.Cwd, dir); ok {
		return filepath.Join(p.Root, rel)
	}
	return p.Root
}

// LimitBase returns the step from which the thread's limits count.
func (p *Position) LimitBase() int {
	if p.Thread.Last == nil {
		return 0
	}
	return p.Thread.Last.LimitBase
}
