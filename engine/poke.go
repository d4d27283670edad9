package engine

import (
	"cmp"
	"context"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

// poke has the role of the last step, or of an earlier one, answer again: with a person's
// words, or with the same instructions if there are none. The new step replaces the old one: it follows the same step that the old one
// followed. Nothing is routed until it exists. If it fails, the thread stays as it was, but
// the steps after an earlier step are undone.
func (e *Engine) poke(ctx context.Context, h *lockedThread, at protocol.Hash, prompt string, o StepOptions) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	if h.ended != nil && h.ended.Status != protocol.StatusCompleted {
		return none, hasEnded(h)
	}
	last, now, err := e.idle(ctx, h)
	if err != nil {
		return none, err
	}
	pos, err := e.then(ctx, h, now, at)
	if err != nil {
		return none, err
	}
	old := pos.Thread.Last
	if old == nil {
		return none, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s cannot be retried: it has no step to replace", h.id),
			"uwf thread step "+h.id)
	}
	if pos.Workflow.Roles[old.Role].Person {
		return none, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s cannot be retried: a person has made the step", h.id),
			"uwf thread fork "+string(pos.Previous())+" starts another thread from the step before")
	}
	if pos.Workflow.Roles[old.Role].HasChildren() {
		return none, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s cannot be retried: the step joins the results of other threads", h.id),
			"uwf thread fork "+string(pos.Previous())+" starts another thread from the step before")
	}
	if err := pos.WithinBudget(old.Role); err != nil {
		return none, err
	}
	if _, err := e.eachKid(ctx, h, false, e.Stop); err != nil {
		return none, err
	}
	if last, err = e.backTo(ctx, h, last, now, pos.Thread.Head, o.KeepFiles); err != nil {
		return none, err
	}
	before, err := e.BeforeHead(ctx, pos)
	if err != nil {
		return none, err
	}
	prompt = cmp.Or(prompt, old.EdgePrompt)
	t := task{role: old.Role, prompt: prompt, cwd: pos.Here(old.Cwd), limitBase: old.LimitBase, replaces: true}
	if t.promptHash, err = e.batch().Add(ctx, protocol.Text(prompt)); err != nil {
		return none, err
	}
	if !o.KeepFiles {
		if t.files, err = e.Files().ToPutBack(ctx, h.files(), pos.Thread); err != nil {
			return none, err
		}
	}
	if t, err = e.onceMore(ctx, pos, t); err != nil {
		return none, err
	}
	return e.attempt(ctx, h, before, t, last, o)
}

// then is where a thread stood at one of its nodes; "": where it stands now.
func (e *Engine) then(ctx context.Context, h *lockedThread, now *status.Position, at protocol.Hash) (*status.Position, error) {
	if at == "" || at == h.head {
		return now, nil
	}
	for s, err := range now.Thread.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Hash == at {
			return e.atNode(ctx, h, at)
		}
	}
	return nil, fault.New(protocol.CodeNotFound, "thread %s has no step %s", h.id, at)
}
