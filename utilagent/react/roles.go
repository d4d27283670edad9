package react

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/roles"
)

// ErrMaxRounds means that a run has used its rounds, or another budget, before
// it called resolve.
var ErrMaxRounds = errors.New("max rounds exceeded")

// Roles makes roles that work with tools until they call resolve with
// their output. Of the loop, Model is required; Resolve is set for each role, and
// Record, unless it is set, to the request's.
func Roles(l Loop) roles.Maker {
	return func(prompt string, schema any) roles.Func {
		return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			loop := l
			resolve, err := NewResolve(schema)
			if err != nil {
				return agentkit.Result{}, err
			}
			loop.Resolve = resolve
			if loop.Record == nil {
				loop.Record = req.Turn
			}
			id, err := runenv.Of(ctx).NewID()
			if err != nil {
				return agentkit.Result{}, err
			}
			session := InMemory(id, llm.System(prompt+"\n\n"+HowToResolve), llm.User(req.User))
			answer, err := loop.Run(ctx, session)
			res := agentkit.Result{
				Value: answer.Value, SessionID: id, Usage: answer.Bill.Usage(),
				Detail: &protocol.Detail{Model: answer.Model, Outcome: string(answer.Outcome)},
			}
			if err == nil && answer.Outcome != Done {
				err = fmt.Errorf("%w (%s)", ErrMaxRounds, answer.Outcome)
			}
			return res, err
		}
	}
}

// NewResolve returns the end of a run for a role's schema. Every role may also suspend. Errors: the schema's.
func NewResolve(schema any) (*Resolve, error) {
	role, err := extract.NewRole(schema)
	if err != nil {
		return nil, err
	}
	return &Resolve{Schema: schema, Check: func(ctx context.Context, value any) (string, error) {
		_, err := extract.Value(ctx, value, role)
		if invalid, ok := errors.AsType[*extract.InvalidError](err); ok {
			return invalid.Error(), nil
		}
		return "", err
	}}, nil
}

// HowToResolve is what a model must be told about the end of its run.
const HowToResolve = "## How You End\n\n" +
	"Work with your tools. When the task is complete, call the tool `" + ResolveTool + "` with the final output: that ends your turn, and a text does not.\n\n" +
	"If only a person can answer or decide, do not guess. Call `" + ResolveTool + "` with {\"" + protocol.StatusKey + "\": \"" + protocol.SuspendNode +
	"\", \"reason\": \"<what you need, from whom, and why>\"}, and the thread waits for the answer."
