package engine

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/engine/casting"
	"github.com/united-workforce/uwf/engine/limits"
	"github.com/united-workforce/uwf/engine/retry"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
)

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

// answers reports whether a step records the same question as the one asked now.
func (a *attempt) answers(ctx context.Context, s protocol.Step) bool {
	h, err := a.Batch().Add(ctx, protocol.Text(s.EdgePrompt))
	return err == nil && h == a.task.promptHash
}
