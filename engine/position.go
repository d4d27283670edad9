package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// position is where a thread stands: its newest nodes, and what the moderator
// makes of them.
type position struct {
	id       string
	thread   *thread.Thread
	workflow protocol.Workflow
	facts    heads.Facts
	parked   int64  // ms: the visit goes on then; 0: it is not parked
	root     string // where it works, "" if that is where its start says
	state    moderator.State
	next     moderator.Decision
	// problem is why there is no decision although the nodes are all right: the
	// graph has no answer, or the config cannot be read.
	problem error
	bounds  []bound       // of those whose part the thread plays
	heldBy  *bound        // that is reached
	kids    children.Kids // that play the role that is next, if that has children
	lifted  bool          // a limit of steps, because a person has said so
	again   bool          // the role that is next has made the last step, too, and is asked once more
	form    any           // the schema of the answer that a person is to give; nil: none is asked for
	stuck   bool          // it is the graph that has no answer: stepping again cannot help
	used    used          // what ended the last step before its work was done
}

// used is the budget that a step has used up: the outcome of its detail. The zero value:
// none.
type used struct {
	outcome string
	ofRun   bool // it was what was left of the whole run's
}

// position reads the head, the start, the workflow and the last output, however
// long the thread is. It returns an error if one of them cannot be read; what
// was read before it is in the position.
func (e *Engine) position(ctx context.Context, id string, head protocol.Hash) (*position, error) {
	p := &position{id: id}
	t, err := thread.Open(ctx, e.nodes(), head)
	if err != nil {
		return p, e.leadsNowhere(ctx, id, head, err)
	}
	p.thread = t
	if p.workflow, err = e.workflow(ctx, t.Start.Workflow); err != nil {
		return p, err
	}
	steps := &history{thread: t}
	if p.state, err = e.state(ctx, p.workflow, t, steps); err != nil {
		return p, err
	}
	if p.facts, err = e.facts(ctx, id); err != nil {
		return p, err
	}
	if p.state.Limits, p.problem = e.limits(ctx, p); p.problem != nil {
		return p, nil
	}
	if p.state.Visits, err = visits(ctx, t, p.state.Limits); err != nil {
		return p, err
	}
	if budget.Bounded(p.state.Limits) {
		if p.state.Spent, err = e.spentTogether(ctx, id, head, p.facts); err != nil {
			return p, err
		}
	}
	if p.facts.Parent != nil {
		if p.bounds, err = e.above(ctx, p.facts.Parent); err != nil {
			return p, err
		}
	}
	p.parked = e.parkedUntil(p.facts)
	p.next, p.problem = moderator.Next(ctx, p.state)
	if p.problem == nil && p.next.Kind == moderator.Suspend && p.place().Asked(p.facts) > 0 {
		p.next, p.problem = e.onceMoreFan(ctx, p)
	}
	if err := cmp.Or(steps.err, context.Cause(ctx)); p.problem != nil && err != nil {
		return p, err // the graph may well have an answer, but not now
	}
	p.stuck = p.problem != nil
	if p.problem == nil && (p.next.Kind == moderator.Run || p.next.Kind == moderator.Fan) {
		p.heldAbove()
	}
	if p.problem == nil && p.next.Cause == moderator.ByOutput && p.state.Last.Suspend != nil {
		if detail, err := thread.ShownDetail(ctx, e.nodes(), t.Last.Detail); err == nil { // others have details of their own
			p.used.outcome, p.used.ofRun = detail.UsedUp()
		}
	}
	if role := p.workflow.Roles[p.next.Role]; p.problem == nil && p.next.Kind == moderator.Suspend && role.Person {
		p.form, err = cas.Schema(ctx, e.nodes(), role.Frontmatter)
	}
	if p.problem == nil && p.next.Kind == moderator.Fan {
		p.kids, err = e.kids(ctx, p)
	}
	return p, err
}

// state is what the moderator decides over, without limits.
func (e *Engine) state(ctx context.Context, w protocol.Workflow, t *thread.Thread, steps *history) (moderator.State, error) {
	s := moderator.State{Workflow: w, Start: t.Start, History: steps.steps(ctx), KeyOf: children.KeyOf}
	if t.Last == nil {
		return s, nil
	}
	out, err := t.Output(ctx, *t.Last)
	if err != nil {
		return s, err
	}
	s.Last = &moderator.Last{Role: t.Last.Role, Output: out.Value, Suspend: out.Suspend, Location: t.Last.Cwd}
	s.Steps, s.Depth = t.Last.Index+1-t.Last.LimitBase, t.Len()
	return s, nil
}

// leadsNowhere adds to an error for a head which entry of the heads names it, if there
// is no such node, or another: then it is that line that is damaged, or the node is
// lost.
func (e *Engine) leadsNowhere(ctx context.Context, id string, head protocol.Hash, err error) error {
	var kind *cas.TypeError
	_, lost := e.Store.Get(ctx, head)
	if !errors.Is(lost, cas.ErrNotFound) && !(errors.As(err, &kind) && kind.Hash == head) {
		return err
	}
	if where, ok := e.Heads.(heads.Placer); ok {
		if place := where.ThreadPlace(ctx, id); place != "" {
			return fmt.Errorf("%w, named in %s", err, place)
		}
	}
	return err
}

// workflow reads a workflow, once if this engine is [Engine.remembering].
func (e *Engine) workflow(ctx context.Context, h protocol.Hash) (protocol.Workflow, error) {
	if w, ok := e.workflows[h]; ok {
		return w, nil
	}
	w, err := cas.Read[protocol.Workflow](ctx, e.nodes(), h)
	if err == nil && e.workflows != nil {
		e.workflows[h] = w
	}
	return w, err
}

// output is the position in the words of the command line.
func (p *position) output() protocol.StepOutput {
	out := protocol.StepOutput{
		Thread: p.id, Head: p.thread.Head, Status: protocol.StatusIdle,
		Workflow: p.thread.Start.Workflow, WorkflowName: p.workflow.Name,
	}
	if p.state.Last != nil {
		out.Output = p.state.Last.Output
	}
	switch {
	case p.problem == nil && p.parked > 0:
		role, until := p.next.Role, p.parked
		out.Status, out.CurrentRole, out.ParkedUntil = protocol.StatusParked, &role, &until
	case p.problem == nil && p.next.Kind == moderator.Suspend && p.next.Cause != moderator.ByBudget && p.facts.ParkedUntil > notParked:
		role := p.next.Role // its time has come
		out.CurrentRole = &role
	case p.problem != nil:
		out.Error = fault.Step(p.explain())
		if p.stuck {
			out.Status = protocol.StatusFailed
		}
	case p.next.Kind == moderator.Run:
		role := p.next.Role // a copy: the output must not keep the position
		out.CurrentRole = &role
	case p.next.Kind == moderator.Fan:
		role := p.next.Role
		out.CurrentRole = &role
		p.kids.Tell(p.place(), &out)
	case p.next.Kind == moderator.End: // also before it is archived
		out.Status, out.Message = protocol.StatusCompleted, p.next.Prompt
	case p.next.Kind == moderator.Suspend:
		out.Status = protocol.StatusSuspended
		role, prompt := p.next.Role, p.next.Prompt
		out.SuspendedRole, out.SuspendMessage = &role, &prompt
		switch {
		case p.next.Cause == moderator.ByLimit:
		case p.next.Cause == moderator.ByBudget, p.used.ofRun:
			out.Error = &protocol.StepError{Code: protocol.CodeBudget, Message: prompt, Hint: strings.Join(p.moreHints(), "\n")}
		case p.used.outcome != "":
			out.Error = &protocol.StepError{Code: protocol.CodeBudget, Message: prompt, Hint: "uwf thread resume " + p.id + " gives the step as much again"}
		default:
			out.Question = &protocol.Question{Role: role, Text: prompt, Schema: p.form}
		}
	}
	return out
}

// explain says what to do about a position without a decision. A graph and an
// output are what they are: the way out is another try at the last step.
func (p *position) explain() *protocol.Error {
	err := fault.Of(p.problem)
	if !p.stuck {
		return err
	}
	err = &protocol.Error{Code: err.Code, Message: err.Message, Err: err}
	if p.thread.Last != nil {
		if !p.workflow.Roles[p.thread.Last.Role].Person {
			err = fault.Hinted(err, "uwf thread poke "+p.id+" -p '<new instructions>' lets role "+p.thread.Last.Role+" answer once more")
		}
		err = fault.Hinted(err, "uwf thread fork "+string(p.previous())+" starts another thread from the step before")
	}
	return fault.Hinted(err, "uwf thread kill "+p.id)
}

// previous is the node that the thread's last step follows.
func (p *position) previous() protocol.Hash {
	if prev := p.thread.Last.Prev; prev != nil {
		return *prev
	}
	return p.thread.StartHash
}
