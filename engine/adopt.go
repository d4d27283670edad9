package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/casting"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/limits"
	"github.com/united-workforce/uwf/engine/oscommand"
	"github.com/united-workforce/uwf/engine/retry"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/verify"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// takeOver adopts what a run left when it ended unseen, if it is the step that is asked for
// now: finished work is never paid for twice, whichever agent did it and however that agent is
// named. It reports false if there is nothing to adopt; the caller then runs the step. If
// there is something that cannot be adopted, it returns an error and nothing runs: a person
// decides.
//
// If the record is missing or unreadable, the step itself must prove that it is the one asked
// for.
func (a *attempt) takeOver(ctx context.Context, last rundir.Record) (out protocol.StepOutput, adopted bool, err error) {
	known := !last.Damaged && !last.Missing
	if known && !last.Unfinished(a.locked.head) {
		return out, false, nil // already judged
	}
	result, err := a.dir.Left()
	a.heardLate(ctx, last, result)
	var none *agentproc.ResultError
	switch {
	case errors.As(err, &none):
		return a.takeSpoiled(ctx, last, none)
	case err != nil:
		return out, false, err
	case result.StepHash == "", a.inThread(ctx, result.StepHash):
		return out, false, a.nothingLeft(last)
	case known && !a.task.givenTo(last):
		return out, false, a.answeredOtherwise(ctx, last, result.StepHash)
	}
	return a.adopt(ctx, last, result)
}

// heardLate notes what a provider has said to an agent whose engine was killed, if its reset is
// still to come.
func (a *attempt) heardLate(ctx context.Context, last rundir.Record, result protocol.Result) {
	began, resets := time.UnixMilli(last.StartedAt), time.UnixMilli(result.RetryAtMs)
	if result.Kind != protocol.FailedRateLimit || !resets.After(a.Env.Now()) {
		return
	}
	c, err := a.Config(ctx)
	if _, known := c.Agents[last.Agent]; err != nil || !known {
		return
	}
	cmd, err := a.Casting().Fallback(c, last.Agent, casting.Wish{})
	if err != nil {
		return // whoever plays next finds out
	}
	account := a.Casting().Account(ctx, cmd, a.pos.Workflow.Name, last.Role)
	refusal := limits.Refusal{Begun: began, At: began, RetryAt: resets, Reason: result.Error}
	a.Accounts().Refused(account, refusal, retry.Of(c, last.Agent))
}

// inThread reports whether the thread already has a step: after a power cut, an older output
// may lie next to a newer record.
func (a *attempt) inThread(ctx context.Context, h protocol.Hash) bool {
	if h == a.locked.head {
		return true
	}
	s, err := cas.Read[protocol.Step](ctx, a.Nodes(), h)
	return err == nil && s.Start == a.pos.Thread.StartHash && s.Index < a.pos.Thread.Len()
}

// adopt takes a result that names a step.
func (a *attempt) adopt(ctx context.Context, last rundir.Record, result protocol.Result) (out protocol.StepOutput, adopted bool, err error) {
	a.record = last
	if last.Damaged || last.Missing {
		a.record = a.newRecord()
	}
	a.record.More = a.more
	step, err := a.accept(ctx, result)
	if err == nil && (last.Damaged || last.Missing) && !a.answers(ctx, step.Step) {
		err = verify.Rejected(result.StepHash, protocol.CodeAgent, "step %s answers another prompt", result.StepHash)
	}
	if err != nil {
		var no *verify.Rejection
		if errors.As(err, &no) {
			no.Why.Message = fmt.Sprintf("what an interrupted run has left in %s is not taken over: %s", a.dir.File(runfiles.StdoutFile), no.Why.Message)
		}
		return out, false, a.reject(err) // once: the next step runs the agent again
	}
	agent := last.Agent
	if agent == "" {
		agent = step.Step.Agent
		a.record.Agent = agent
	}
	a.started(agent, true)
	defer func() { a.ended(out, err) }()
	out, err = a.advance(ctx, step)
	out.Adopted = true
	return out, true, err
}

// ranOn returns how the command of a run has ended whose engine was killed, if it is the step that
// is asked for now.
func (a *attempt) ranOn(last rundir.Record, o StepOptions) (agentproc.Outcome, bool) {
	if o.Fresh || last.Damaged || last.Missing || !last.Unfinished(a.locked.head) || !a.task.givenTo(last) {
		return agentproc.Outcome{}, false
	}
	return oscommand.Left(runfiles.Dir(a.dir.Path))
}

// adoptCommand makes the step of such a command.
func (a *attempt) adoptCommand(ctx context.Context, last rundir.Record, ran agentproc.Outcome) (out protocol.StepOutput, err error) {
	a.record, a.task.cwd = last, last.Cwd
	a.record.More = a.more
	a.putBack()
	a.started(a.cmd.Name, true)
	defer func() { a.ended(out, err) }()
	out, err = a.concluded(ctx, ran, nil)
	out.Adopted = true
	return out, err
}

// answers reports whether a step records the same question as the one asked now.
func (a *attempt) answers(ctx context.Context, s protocol.Step) bool {
	h, err := a.batch().Add(ctx, protocol.Text(s.EdgePrompt))
	return err == nil && h == a.task.promptHash
}

// takeSpoiled looks for a finished step in an output that does not end in a result.
func (a *attempt) takeSpoiled(ctx context.Context, last rundir.Record, wrong *agentproc.ResultError) (out protocol.StepOutput, adopted bool, err error) {
	asked := last.Damaged || last.Missing || a.task.givenTo(last)
	for _, h := range wrong.Hashes {
		if h == a.locked.head || !asked {
			continue
		}
		got, err := a.accept(ctx, protocol.Result{StepHash: h})
		if err == nil && a.answers(ctx, got.Step) {
			return a.adopt(ctx, last, protocol.Result{StepHash: h})
		}
	}
	if !wrong.Spoiled {
		return out, false, a.nothingLeft(last)
	}
	return out, false, a.anew(&protocol.Error{
		Code:    protocol.CodeCorrupt,
		Message: fmt.Sprintf("an interrupted run of %q seems to have finished, but its result in %s is damaged: %v", a.task.role, a.dir.File(runfiles.StdoutFile), wrong),
		Err:     wrong,
	})
}

// nothingLeft says that the step is made again, if it had begun.
func (a *attempt) nothingLeft(last rundir.Record) error {
	switch {
	case last.Damaged:
		a.warn(a.dir.File(runfiles.RecordFile) + " is damaged, and there is no trace of a finished step: the step runs again")
	case !last.Missing:
		a.cutShort(last)
		a.warn(fmt.Sprintf("a run of role %q was interrupted, and has left no result in %s: the step is made anew", last.Role, filepath.Clean(a.dir.Path)))
	}
	return nil
}

// answeredOtherwise refuses to discard a finished step that answers a different question from
// the one asked now.
func (a *attempt) answeredOtherwise(ctx context.Context, last rundir.Record, h protocol.Hash) error {
	if _, err := a.Nodes().Get(ctx, h); errors.Is(err, cas.ErrNotFound) {
		return nil // no such step, so nothing to discard
	}
	return a.anew(fault.Hinted(fault.New(protocol.CodeFailed, "role %q has already finished an earlier request, and its result is waiting to be used: step %s", last.Role, h),
		a.further()+" takes it over"))
}

// anew adds a hint for users who do not want the result that is there.
func (a *attempt) anew(err *protocol.Error) error {
	return fault.Hinted(err, a.again()+" --discard-result discards it and runs the step again", "what is there is in "+filepath.Clean(a.dir.Path))
}

// adoptAsked adopts the result of an interrupted resume or poke. The moderator cannot ask for
// that step again, because it does not know the person's words, so the task in the record
// counts.
func (e *Engine) adoptAsked(ctx context.Context, h *lockedThread, pos *status.Position, last rundir.Record, o StepOptions) (protocol.StepOutput, bool, error) {
	var none protocol.StepOutput
	if last.Damaged {
		return none, false, nil
	}
	if last.Replaces {
		before, err := e.BeforeHead(ctx, pos)
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
	return a.takeOver(ctx, last)
}
