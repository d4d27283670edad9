package engine

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/protocol"
)

// adopt takes the result of a run that has ended unseen, if it is whole and is
// what was asked for: finished work is never paid for twice. It reports false
// if there is nothing to adopt; the step is then run again.
func (a *attempt) adopt(ctx context.Context, last record) (out protocol.StepOutput, adopted bool, err error) {
	result, finished := a.dir.finished()
	if !finished {
		return out, false, nil
	}
	a.record = last
	a.record.More = a.more
	step, err := a.accept(ctx, result)
	var no *rejection
	if errors.As(err, &no) {
		err := a.reject(no)
		if no.why.Code == protocol.CodeCorrupt { // finished work was lost on disk: say so, once
			return out, false, err
		}
		return out, false, nil
	}
	if err != nil {
		return out, false, err
	}
	a.started(last.Agent, true)
	defer func() { a.ended(out, err) }()
	out, err = a.advance(ctx, step)
	out.Adopted = true
	return out, true, err
}

// adoptAsked adopts the result of an interrupted resume or poke. The moderator
// cannot ask for that step again, because it does not know the person's words,
// so what the record says was asked for counts.
func (e *Engine) adoptAsked(ctx context.Context, h *hold, pos *position, last record, o StepOptions) (protocol.StepOutput, bool, error) {
	var none protocol.StepOutput
	if last.damaged || (o.agentOf(last.Role) != "" && o.agentOf(last.Role) != last.Agent) {
		return none, false, nil
	}
	if last.Replaces {
		before, err := e.beforeHead(ctx, pos)
		if err != nil {
			return none, false, err
		}
		pos = before
	}
	a := e.newAttempt(h, pos, task{
		role: last.Role, promptHash: last.PromptHash, cwd: last.Cwd, limitBase: last.LimitBase,
		resumes: last.Resumes, replaces: last.Replaces,
	})
	a.more = o.more
	return a.adopt(ctx, last)
}
