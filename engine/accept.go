package engine

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/verify"
	"github.com/united-workforce/uwf/protocol"
)

// accept checks what an agent returned. The error is a *[rejection], unless the store could
// not be read.
func (a *attempt) accept(ctx context.Context, result protocol.Result) (verify.Accepted, error) {
	got, err := verify.Asked{
		Nodes: a.Nodes(), Store: a.Store, Thread: a.pos.Thread, Workflow: a.pos.Workflow, Head: a.locked.head,
		Role: a.task.role, Prompt: a.task.prompt, PromptHash: a.task.promptHash, LimitBase: a.task.limitBase, Cwd: a.task.cwd,
		RanIn: a.record.Cwd, StartedAt: a.record.StartedAt, Now: a.nowMs(),
		Place: func(role, location string) (string, error) { return a.Workplace(ctx, role, a.pos.Dir(), location) },
	}.Check(ctx, result)
	if err != nil {
		return got, err
	}
	a.kept.Check(ctx, got.Step)
	return a.withTries(ctx, got)
}

// reject records why a result was rejected, so that no later step adopts it. Any other error
// leaves the record unfinished: the result may be good, and the next step checks it again.
func (a *attempt) reject(err error) error {
	var no *verify.Rejection
	if !errors.As(err, &no) {
		return err
	}
	no.Why = fault.Hinted(no.Why, "to retry: "+a.again(), "what the agent printed is in "+a.dir.Path)
	no.Why = a.hidden(no.Why)
	a.record.StepHash, a.record.Reason = no.Step, no.Why.Message
	return a.failed(rundir.Rejected, no.Why)
}
