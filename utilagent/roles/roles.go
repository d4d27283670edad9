// Package roles builds agents from Go functions: one function per role, several of which can share a program.
package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
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

// Reader extracts the role's output from an agent's answer and returns it as JSON text.
type Reader func(ctx context.Context, system, user string, schema any) (string, protocol.Usage, error)

// FromText returns a maker for an agent that answers in text. The prompt describes the format. If the
// frontmatter of an answer does not satisfy the schema, read extracts the output, unless it is nil. Errors
// are those of the agent and the reader, or *extract.InvalidError.
func FromText(agent Func, read Reader) Maker {
	return func(system string, schema any) Func {
		return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			request := *req
			request.System = prompt.FormatInstruction(schema) + "\n\n" + system
			request.Prompt = request.System + "\n\n" + request.User
			res, err := agent(ctx, &request)
			if err != nil || res.Value != nil || res.Suspend != "" {
				return res, err
			}
			return readText(ctx, res, schema, read)
		}
	}
}

// readText converts a text answer to a value.
func readText(ctx context.Context, res agentkit.Result, schema any, read Reader) (agentkit.Result, error) {
	role, err := extract.NewRole(schema)
	if err != nil {
		return res, err
	}
	answer := res.Output
	out, err := extract.Text(ctx, strings.ToValidUTF8(answer, "\uFFFD"), role)
	res.ExtractedBy = protocol.ByFrontmatter
	if err != nil && read != nil {
		system, user := prompt.Extraction("", schema, answer)
		text, usage, failed := read(ctx, system, user, schema)
		var bill protocol.Bill
		bill.Add(res.Usage)
		bill.Add(&usage)
		res.Usage = bill.Usage()
		if failed == nil {
			out, failed = extract.Reply(ctx, text, role)
		}
		var invalid *extract.InvalidError
		if failed != nil && !errors.As(failed, &invalid) {
			return res, errors.Join(err, fmt.Errorf("extraction: %w", failed))
		}
		res.ExtractedBy, err = protocol.ByLLM, failed
	}
	if err != nil {
		return res, err
	}
	if len(res.Turns) == 0 && !runenv.Of(ctx).Recorded() {
		// Otherwise only the value would be kept, and the agent's text lost.
		res.Turns = []protocol.Turn{{Role: protocol.TurnAssistant, Content: answer}}
	}
	res.Output, res.Value = "", out.Value
	return res, nil
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
