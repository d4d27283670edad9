package react

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// ResolveTool is the name of the tool that ends a run with a value.
const ResolveTool = "resolve"

// wrapped is the parameter that holds an output which is no object: arguments
// of a tool always are one.
const wrapped = "value"

// Resolve describes the value that ends a run.
type Resolve struct {
	// Schema is the JSON Schema of the value, as a JSON value.
	Schema any
	// Check says what is wrong with a value, for the model; "" if nothing is. An
	// error ends the run. Nil accepts any.
	Check func(ctx context.Context, value any) (problem string, err error)
}

// tool declares the tool to the model.
func (v *Resolve) tool() llm.Tool {
	return llm.Tool{
		Name:        ResolveTool,
		Description: "Submit the final structured output for this role. Call this when the task is complete.",
		Parameters:  v.parameters(),
	}
}

// parameters is the schema as endpoints take it: of type object, and without
// what only a store knows.
func (v *Resolve) parameters() any {
	schema, _ := plain(v.Schema).(map[string]any)
	if v.wraps() {
		return map[string]any{
			"type": "object", "properties": map[string]any{wrapped: schema},
			"required": []string{wrapped}, "additionalProperties": false,
		}
	}
	if schema == nil {
		schema = map[string]any{}
	}
	schema["type"] = "object"
	return schema
}

// wraps reports whether the value is not an object.
func (v *Resolve) wraps() bool {
	schema, _ := v.Schema.(map[string]any)
	switch t := schema["type"].(type) {
	case string:
		return t != "object"
	case []any:
		for _, name := range t {
			if name == "object" {
				return false
			}
		}
		return true
	}
	return false
}

// value takes the value out of a call's arguments. A model may also put an
// object that suspends where the schema wants something else.
func (v *Resolve) value(args map[string]any) any {
	if inner, ok := args[wrapped]; ok && v.wraps() && len(args) == 1 {
		return inner
	}
	return args
}

// plain copies a schema without "$schema" and without the formats that only a
// store knows: strict endpoints refuse them.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		delete(out, "$schema")
		if f := out["format"]; f == "ocas_ref" || f == "cas_ref" {
			delete(out, "format")
		}
		for k, inner := range out {
			out[k] = plain(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = plain(inner)
		}
		return out
	}
	return v
}

// resolved is the answer to a call of resolve. The value counts when all calls
// of the reply are answered.
func (r *run) resolved(ctx context.Context, args map[string]any) (tools.Result, error) {
	value := r.Resolve.value(args)
	if r.Resolve.Check != nil {
		problem, err := r.Resolve.Check(ctx, value)
		if err != nil {
			return tools.Result{}, err
		}
		if problem != "" {
			return r.guard.failed(tools.Failure("%s\nFix the arguments and call the tool again", problem)), nil
		}
	}
	r.answer.Value, r.answer.Outcome = value, Done
	if b, err := json.MarshalIndent(value, "", "  "); err == nil {
		r.answer.Text = string(b)
	}
	return tools.Result{Text: `{"ok":true}`}, nil
}

// onlyResolve answers every other call in the last round.
func (r *run) onlyResolve(name string) tools.Result {
	return r.guard.failed(tools.Failure("%s was not run: there are no rounds left but for %s", fmt.Sprintf("%.80q", name), ResolveTool))
}
