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
// A third party adds a tool with one call of [Func] or [New], or by implementing
// [Tool].
// The exported API is provisional until the other own agents are built on it.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
)

// Effect is what a call can do.
type Effect int

// The effects.
const (
	Reads   Effect = iota // changes nothing, and tells nobody
	Fetches               // changes nothing, but what it asks for can tell others what it knows
	Writes                // changes files of the workspace
	Runs                  // runs a program: anything
)

// Spec describes a tool.
type Spec struct {
	Name        string
	Aliases     []string // names that are accepted, but not offered
	Description string
	// Parameters is the JSON Schema of the arguments: an object with properties, required and
	// additionalProperties false. Arguments are also checked against it before a call.
	Parameters map[string]any
	Effect     Effect
	// SideBySide says that calls may run in parallel with those of other such tools. It applies
	// only to tools whose effect is [Reads]; all other calls run one after the other.
	SideBySide bool
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
// with json tags. Without Parameters their schema is made from A: the tag doc
// tells a model what a field is, enum:"a,b" lists the values of a string; a field
// is required unless it is a pointer or says omitempty. [Registry.Add] refuses a
// tool whose A cannot be described so.
func New[A any](spec Spec, call func(ctx context.Context, args A) (string, error)) Tool {
	t := funcTool[A]{spec: spec, call: call}
	if spec.Parameters == nil {
		t.spec.Parameters, t.err = schemaOf(reflect.TypeFor[A]())
	}
	return t
}

// Func is [New] for a tool with only a name and a description. The tool counts as one that may
// do anything ([Runs]), so an agent with the permission read-only or edits is not offered it.
func Func[A any](name, description string, call func(ctx context.Context, args A) (string, error)) Tool {
	return New(Spec{Name: name, Description: description, Effect: Runs}, call)
}

type funcTool[A any] struct {
	spec Spec
	err  error // A cannot be described
	call func(ctx context.Context, args A) (string, error)
}

func (t funcTool[A]) invalid() error { return t.err }

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
