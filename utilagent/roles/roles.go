// Package roles makes agents of functions: of a role's prompt and schema, a
// function that plays it. Several of them may share a program.
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

// Func does a role's work and returns its output as Result.Value. It fits
// agentkit.Options.Run.
type Func = func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error)

// Maker makes a role of what defines one: a prompt and the JSON Schema of its
// output, as a JSON value. What the role has to do now is in Request.User.
type Maker func(prompt string, schema any) Func

// Binding says which maker is for which role.
type Binding struct {
	Maker     Maker            // of every role without its own
	Overrides map[string]Maker // by role; may be nil
}

// Agent makes an agent of roles. An output that does not satisfy the role's schema
// is asked for again, with what was wrong at the end of the message.
func Agent(name string, b Binding) agentkit.Options {
	overrides := maps.Clone(b.Overrides)
	play := func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		maker := b.Maker
		if own := overrides[req.Role]; own != nil {
			maker = own
		}
		if maker == nil {
			return agentkit.Result{}, fmt.Errorf("nothing is bound to role %s", req.Role)
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

// Reader reads the answer of an agent and returns the role's output as JSON text.
type Reader func(ctx context.Context, system, user string, schema any) (string, protocol.Usage, error)

// FromText makes roles of an agent that answers in text. The agent is told the
// format; an answer whose frontmatter does not satisfy the schema is given to read,
// unless that is nil. Errors: the agent's, the reader's, *extract.InvalidError.
func FromText(agent Func, read Reader) Maker {
	return func(system string, schema any) Func {
		return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			told := *req
			told.System = prompt.FormatInstruction(schema) + "\n\n" + system
			told.Prompt = told.System + "\n\n" + told.User
			res, err := agent(ctx, &told)
			if err != nil || res.Value != nil || res.Suspend != "" {
				return res, err
			}
			return readText(ctx, res, schema, read)
		}
	}
}

// readText makes a value of an answer in text.
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
		// The value alone would be kept, and what the agent has written lost.
		res.Turns = []protocol.Turn{{Role: protocol.TurnAssistant, Content: answer}}
	}
	res.Output, res.Value = "", out.Value
	return res, nil
}

// SuspendedError is returned by a typed role that waits for a person.
type SuspendedError struct{ Reason string }

func (e *SuspendedError) Error() string { return "suspended: " + e.Reason }

// As makes a role's output a Go value, for code that calls roles itself. Errors:
// the role's, *[SuspendedError], or that the output does not fit T.
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

// suspendReason is why a role waits, "" if it does not. A model says so in its
// output.
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
