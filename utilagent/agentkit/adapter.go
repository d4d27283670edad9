package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// RoleFunc does a role's work and returns its output as Result.Value.
type RoleFunc = RunFunc

// Adapter makes a role of what defines one: a prompt and the JSON Schema of its
// output, as a JSON value. What the role has to do now is in Request.User.
type Adapter func(prompt string, schema any) RoleFunc

// Binding says which adapter plays which role.
type Binding struct {
	Adapter   Adapter            // of every role without its own
	Overrides map[string]Adapter // by role; may be nil
}

// FromAdapter makes an agent of adapters. An output that does not satisfy the
// role's schema is asked for again, with what was wrong at the end of the
// message.
func FromAdapter(name string, b Binding) Options {
	overrides := maps.Clone(b.Overrides)
	play := func(ctx context.Context, req *Request) (Result, error) {
		adapter := b.Adapter
		if own := overrides[req.Role]; own != nil {
			adapter = own
		}
		if adapter == nil {
			return Result{}, fmt.Errorf("no adapter is bound to role %s", req.Role)
		}
		return adapter(req.System, req.Schema)(ctx, req)
	}
	return Options{
		Name: name, Structured: true, Run: play,
		Continue: func(ctx context.Context, _, message string, req *Request) (Result, error) {
			again := *req
			again.User += "\n\n" + message
			again.Prompt += "\n\n" + message
			return play(ctx, &again)
		},
	}
}

// TextExtractor reads the answer of an agent and returns the role's output as
// JSON text. See [Extractor], of which it is one with a model.
type TextExtractor func(ctx context.Context, system, user string, schema any) (string, protocol.Usage, error)

// AdaptAgent makes an adapter of an agent that answers in text. The agent is
// told the format; an answer whose frontmatter does not satisfy the schema is
// given to extract, unless that is nil. Errors: the agent's, the extractor's,
// *extract.InvalidError.
func AdaptAgent(agent RunFunc, extractor TextExtractor) Adapter {
	return func(system string, schema any) RoleFunc {
		return func(ctx context.Context, req *Request) (Result, error) {
			told := *req
			told.System = prompt.FormatInstruction(schema) + "\n\n" + system
			told.Prompt = told.System + "\n\n" + told.User
			res, err := agent(ctx, &told)
			if err != nil || res.Value != nil || res.Suspend != "" {
				return res, err
			}
			return readText(ctx, req, res, schema, extractor)
		}
	}
}

// readText makes a value of an answer in text.
func readText(ctx context.Context, req *Request, res Result, schema any, extractor TextExtractor) (Result, error) {
	role, err := ExtractRole(schema)
	if err != nil {
		return res, err
	}
	answer := res.Output
	out, err := extract.Text(ctx, valid(answer), role)
	res.ExtractedBy = protocol.ByFrontmatter
	if err != nil && extractor != nil {
		system, user := prompt.Extraction("", schema, answer)
		text, usage, failed := extractor(ctx, system, user, schema)
		res.charge(usage)
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
	if len(res.Turns) == 0 && !req.kit.turns.recorded() {
		// The value alone would be kept, and what the agent has written lost.
		res.Turns = []protocol.Turn{{Role: protocol.TurnAssistant, Content: answer}}
	}
	res.Output, res.Value = "", out.Value
	return res, nil
}

// charge adds what an extraction cost.
func (r *Result) charge(u protocol.Usage) {
	var b protocol.Bill
	b.Add(r.Usage)
	b.Add(&u)
	r.Usage = b.Usage()
}

// ExtractRole compiles a schema for package extract. Errors: those of
// jsonschema.Compile.
func ExtractRole(schema any) (extract.Role, error) {
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		return extract.Role{}, fmt.Errorf("schema of the role: %w", err)
	}
	return extract.Role{Schema: schema, Compiled: compiled}, nil
}

// SuspendedError is returned by a typed role that waits for a person.
type SuspendedError struct{ Reason string }

func (e *SuspendedError) Error() string { return "suspended: " + e.Reason }

// As makes a role's output a Go value, for code that calls roles itself. Errors:
// the role's, *[SuspendedError], or that the output does not fit T.
func As[T any](role RoleFunc) func(ctx context.Context, req *Request) (T, error) {
	return func(ctx context.Context, req *Request) (T, error) {
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
func suspendReason(res Result) string {
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
