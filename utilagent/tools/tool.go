// Package tools holds what a model may do to a workspace: read, write, edit,
// list, find and search files, fetch pages, run commands.
//
// Invariants:
//   - file tools never leave the workspace, by "..", absolute paths or symbolic
//     links, also when another process swaps a path under them ([os.Root]);
//   - a result is text of bounded length and valid UTF-8; one that begins with
//     "Error:" says what to do next, because the model acts on nothing else;
//   - commands and fetches run only where a person has allowed them. Commands can
//     be kept from writing elsewhere ([Commands]); else an allowed program may do
//     what the user may do.
//
// A third party adds a tool by implementing [Tool], or with one call of [New].
// The exported API is provisional until the other own agents are built on it.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
)

// Effect is what a call can do.
type Effect int

// The effects.
const (
	Reads  Effect = iota // changes nothing
	Writes               // changes files of the workspace
	Runs                 // runs a program: anything
)

// Spec describes a tool.
type Spec struct {
	Name        string
	Aliases     []string // names that are accepted, but not offered
	Description string
	// Parameters is the JSON Schema of the arguments: an object with properties,
	// required and additionalProperties false. It is also what arguments are
	// held against before a call.
	Parameters map[string]any
	Effect     Effect
	// Off says why the tool cannot be used here, and what would change that. A
	// tool that is off is not offered; a call is answered with this text.
	Off string
}

// Tool is something that a model can call. An error is shown to the model after
// "Error: ", so it must say what to do next; only the context's own error ends
// the loop.
type Tool interface {
	Spec() Spec
	Call(ctx context.Context, args map[string]any) (string, error)
}

// New makes a tool of a function. The arguments are decoded into A, a struct
// with json tags.
func New[A any](spec Spec, call func(ctx context.Context, args A) (string, error)) Tool {
	return funcTool[A]{spec: spec, call: call}
}

type funcTool[A any] struct {
	spec Spec
	call func(ctx context.Context, args A) (string, error)
}

func (t funcTool[A]) Spec() Spec { return t.spec }

func (t funcTool[A]) Call(ctx context.Context, args map[string]any) (string, error) {
	b, err := json.Marshal(args)
	if err != nil {
		return "", fmt.Errorf("arguments of %s: %w", t.spec.Name, err)
	}
	var a A
	if err := json.Unmarshal(b, &a); err != nil {
		return "", fmt.Errorf("arguments of %s: %w. Call it again with arguments of the declared types", t.spec.Name, err)
	}
	return t.call(ctx, a)
}

// object is the schema of arguments; properties that are not in required are
// optional.
func object(required []string, properties map[string]any) map[string]any {
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

func property(typ, description string) map[string]any {
	return map[string]any{"type": typ, "description": description}
}
