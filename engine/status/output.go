package status

import (
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// Output is the position in the words of the command line.
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
		out.Status, out.CurrentRole, out.RateLimitedUntil = protocol.StatusRateLimited, &role, &until
	case p.Problem == nil && p.Next.Kind == moderator.Suspend && p.Next.Cause != moderator.ByBudget && p.waits:
		role := p.Next.Role // its time has come
		out.CurrentRole = &role
	case p.Problem != nil:
		out.Error = fault.Step(p.Explain())
		if p.stuck {
			out.Status = protocol.StatusError
		}
	case p.Next.Kind == moderator.Run:
		role := p.Next.Role // a copy: the output must not keep the position
		out.CurrentRole = &role
	case p.Next.Kind == moderator.Fan:
		role := p.Next.Role
		out.CurrentRole, out.Parallel = &role, p.Workflow.Roles[role].Parallel
		p.Kids.Tell(p.Place(), &out)
	case p.Next.Kind == moderator.End: // also before it is archived
		out.Status, out.Message = protocol.StatusCompleted, p.Next.Prompt
	case p.Next.Kind == moderator.Suspend:
		out.Status = protocol.StatusSuspended
		role, prompt := p.Next.Role, p.Next.Prompt
		out.SuspendedRole, out.SuspendMessage = &role, &prompt
		switch {
		case p.Next.Cause == moderator.ByLimit:
		case p.Next.Cause == moderator.ByBudget, p.ofRun:
			out.Error = &protocol.StepError{Code: protocol.CodeLimit, Message: prompt, Hint: strings.Join(p.moreHints(), "\n")}
		case p.UsedUp != "":
			out.Error = &protocol.StepError{Code: protocol.CodeLimit, Message: prompt, Hint: "uwf thread resume " + p.ID + " gives the step as much again"}
		default:
			out.Question = &protocol.Question{Role: role, Text: prompt, Schema: p.Form}
		}
	}
	return out
}

// Explain says what to do about a position without a decision. A graph and an
// output are what they are: the way out is another try at the last step.
func (p *Position) Explain() *protocol.Error {
	err := fault.Of(p.Problem)
	if !p.stuck {
		return err
	}
	err = &protocol.Error{Code: err.Code, Message: err.Message, Err: err}
	if p.Thread.Last != nil {
		if !p.Workflow.Roles[p.Thread.Last.Role].Person {
			err = fault.Hinted(err, "uwf thread retry "+p.ID+" -p '<new instructions>' lets role "+p.Thread.Last.Role+" answer once more")
		}
		err = fault.Hinted(err, "uwf thread fork "+string(p.Previous())+" starts another thread from the step before")
	}
	return fault.Hinted(err, "uwf thread kill "+p.ID)
}

// Previous is the node that the thread's last step follows.
func (p *Position) Previous() protocol.Hash {
	if prev := p.Thread.Last.Prev; prev != nil {
		return *prev
	}
	return p.Thread.StartHash
}

// Damaged is what there is to tell of a thread that could not be read further than to
// this position.
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

// Dir is the directory that the thread works in, as far as it is known: where its
// start says, unless a person has said otherwise.
func (p *Position) Dir() string {
	if p.Root != "" {
		return p.Root
	}
	return p.Thread.Start.Cwd
}

// Here is the place of a directory of the thread's steps, if the thread has moved
// since: a step made elsewhere says where that was.
func (p *Position) Here(dir string) string {
	if p.Root == "" || p.Root == p.Thread.Start.Cwd || dir == "" {
		return dir
	}
	if _, ok := place.Below(p.Root, dir); ok {
		return dir
	}
	if rel, ok := place.Below(p.Thread.Start.Cwd, dir); ok {
		return filepath.Join(p.Root, rel)
	}
	return p.Root
}

// LimitBase is where the thread's limits count from.
func (p *Position) LimitBase() int {
	if p.Thread.Last == nil {
		return 0
	}
	return p.Thread.Last.LimitBase
}
