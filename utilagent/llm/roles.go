package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/roles"
)

// Completer is what a role asks; a [Client] is one.
type Completer interface {
	Complete(ctx context.Context, req Request) (Response, error)
}

// Roles makes roles of one question each: the role's prompt and schema, and
// what it has to do, are put to the model, and its reply is the output as JSON.
// There are no tools. A reply that is no JSON is returned as text, which
// agentkit then asks to correct.
func Roles(model Completer) roles.Maker {
	return func(prompt string, schema any) roles.Func {
		return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			id, err := runenv.Of(ctx).NewID()
			if err != nil {
				return agentkit.Result{}, err
			}
			system, err := JSONPrompt(prompt, schema)
			if err != nil {
				return agentkit.Result{}, err
			}
			resp, err := model.Complete(ctx, Request{Messages: []Message{System(system), User(req.User)}, JSON: true})
			if err != nil {
				return agentkit.Result{}, err
			}
			res, err := JSONResult(resp)
			res.SessionID = id
			if err != nil {
				return res, err
			}
			return res, req.Turn(ctx, protocol.Turn{
				Role: protocol.TurnAssistant, Content: resp.Message.Content, Reasoning: resp.Message.Reasoning, Usage: resp.Usage.IfKnown(),
			})
		}
	}
}

// JSONPrompt tells a model to answer with one JSON object of a schema, or to
// suspend.
func JSONPrompt(prompt string, schema any) (string, error) {
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return "", fmt.Errorf("schema of the role: %w", err)
	}
	return strings.TrimSpace(prompt) + "\n\n" + fmt.Sprintf(jsonAnswer, b, protocol.StatusKey, protocol.SuspendNode), nil
}

const jsonAnswer = "## Deliverable Format\n\n" +
	"Reply with exactly one JSON value that satisfies this JSON Schema, and nothing else:\n\n```json\n%s\n```\n\n" +
	"If only a person can answer or decide, do not guess. Reply with this instead, and the thread waits for the answer:\n\n" +
	"```json\n{%q: %q, \"reason\": \"<what you need, from whom, and why>\"}\n```"

// JSONResult reads a reply as the output of a role.
func JSONResult(resp Response) (agentkit.Result, error) {
	res := agentkit.Result{Usage: resp.Bill().Usage(), Detail: &protocol.Detail{Model: resp.Model}}
	text := unfence(strings.TrimSpace(resp.Message.Content))
	switch resp.Finish {
	case FinishRefusal:
		return res, fmt.Errorf("the model refuses: %s", resp.Message.Content)
	case FinishLength:
		return res, fmt.Errorf("the reply was cut off at the model's limit after %d characters", len(text))
	}
	if v, err := oneValue(text); err == nil && v != nil {
		res.Value = v
		return res, nil
	}
	res.Output = resp.Message.Content
	return res, nil
}
