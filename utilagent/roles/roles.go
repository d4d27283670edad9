// Package roles builds agents from Go functions: one function per role, several of which can share a program.
package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// Func does a role's work and returns its output as Result.Value. It has the type of agentkit.Options.Run.
type Func = func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error)

// Maker returns the function for a role with a prompt and a JSON Schema for its output, as a JSON value. The
// current instruction is in Request.User.
type Maker func(prompt string, schema any) Func

// Binding assigns makers to roles.
type Binding struct {
	Maker     Maker            // default for all roles
	Overrides map[string]Maker // by role; may be nil
}

// Agent returns an agent that consists of roles. If an output does not satisfy the role's schema, the role is
// called again with the validation error at the end of the message.
func Agent(name string, b Binding) agentkit.Options {
	overrides := maps.Clone(b.Overrides)
	play := func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		maker := b.Maker
		if own := overrides[req.Role]; own != nil {
			maker = own
		}
		if maker == nil {
			return agentkit.Result{}, fmt.Errorf("no implementation for role %s", req.Role)
		}
		return maker(req.System, req.Schema)(ctx, req)
	}
	return agentkit.Options{
		Name: name, Structured: true, Run: play,
		Continue: func(ctx context.Context, _, message string, req *agentkit.Request) (agentkit.Result, error) {
			again := *req
			again.User += "\n\n" + message
			again.Prompt += "\n\n" + message
			return play(ctx, &again)
		},
	}
}

// SuspendedError is returned by a typed role that waits for a person.
type SuspendedError struct{ Reason string }

func (e *SuspendedError) Error() string { return "suspended: " + e.Reason }

// As wraps a role so that its output is a Go value, for code that calls roles itself. It returns the role's
// errors, a *[SuspendedError], or an error if the output does not fit T.
func As[T any](role Func) func(ctx context.Context, req *agentkit.Request) (T, error) {
	return func(ctx context.Context, req *agentkit.Request) (T, error) {
		var out T
		res, err := role(ctx, req)
		if err != nil {
			return out, err
		}
		if reason := suspendReason(res); reason != "" {
			return out, &SuspendedError{Reason: reason}
		}
		if res.Value == nil {
			return out, errors.New("the role returned no value")
		}
		b, err := json.Marshal(res.Value)
		if err == nil {
			err = json.Unmarshal(b, &out)
		}
		if err != nil {
			return out, fmt.Errorf("output of the role: %w", err)
		}
		return out, nil
	}
}

// suspendReason returns the reason why a role waits, or "". A model sets it in its output.
func suspendReason(res agentkit.Result) string {
	if res.Suspend != "" {
		return res.Suspend
	}
	value, _ := res.Value.(map[string]any)
	if value[protocol.StatusKey] != protocol.SuspendNode {
		return ""
	}
	reason, _ := value["reason"].(string)
	return reason
}
