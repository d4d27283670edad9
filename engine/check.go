package engine

import (
	"context"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/casting"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/internal/create"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// CheckFirst returns why the first role of a thread could not be played, or nil, so that a
// caller can find out before the run begins. The thread's directory must have no symbolic
// links. What only the agent can judge, such as its model, is left to the agent. Errors are
// *protocol.Error.
func (e *Engine) CheckFirst(ctx context.Context, start protocol.Start, o StepOptions) error {
	e = e.reading(e.ConfigOnce())
	w, err := cas.Read[protocol.Workflow](ctx, e.Store, start.Workflow)
	if err != nil {
		return create.WrongNode(start.Workflow, "workflow", err)
	}
	if err := create.Runnable(w); err != nil {
		return err
	}
	first, err := moderator.Next(ctx, moderator.State{Workflow: w, Start: start})
	if err != nil {
		return fault.Of(err)
	}
	if first.Kind != moderator.Run {
		return nil
	}
	if c, _ := e.Casting().Program(ctx, w, first.Role, first.Command, o.Wish()); c.Problem != nil {
		return c.Problem
	}
	_, err = e.Workplace(ctx, first.Role, start.Cwd, first.Location)
	return err
}

// Casting finds who plays a role of a thread.
func (e *Engine) Casting() casting.Caster {
	return casting.Caster{Env: e.Env, Dirs: e.Dirs, Config: e.Config}
}

// Wish is what the options say about which agent plays which role.
func (o StepOptions) Wish() casting.Wish {
	return casting.Wish{Agent: o.Agent, Agents: o.Agents, Earlier: o.earlier, Scenario: o.Scenario, Timeout: o.Timeout}
}
