package workflow

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/jsonata"
)

// checkLists tries a join with a single result: JSONata makes no difference between one
// value and a list of it, so what gives a list of many results gives a bare value then,
// and does not fit a schema that wants a list.
func (d *draft) checkLists(r *roleDraft, what string, expr *jsonata.Expr) {
	root, _ := r.schema.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	answers := d.answersOfChildren(r)
	if len(properties) == 0 || len(answers.schemas) == 0 || d.full() {
		return
	}
	output := map[string]any{}
	for _, s := range answers.schemas {
		if one, ok := sample(s, 0).(map[string]any); ok {
			maps.Copy(output, one)
		}
	}
	result := map[string]any{"key": "k", "item": map[string]any{}, "status": "done", "output": output}
	value, _, err := expr.Eval(context.Background(), map[string]any{"results": []any{result}, "depth": int64(0), "history": []any{}, "steps": []any{}},
		jsonata.Options{MaxSteps: 100_000, Bindings: map[string]any{"inputs": map[string]any{}}})
	given, ok := value.(map[string]any)
	if err != nil || !ok {
		return // what it needs besides is not known here
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		schema, _ := properties[name].(map[string]any)
		if _, isList := given[name].([]any); schema["type"] != "array" || isList || given[name] == nil {
			continue
		}
		d.add(r.join.Pos, "put brackets around it: ["+"…"+"]", "%s: with a single result %s is not a list, but its schema wants one", what, quote(name))
	}
}

// sample is a value that a schema is for, as far as that is plain.
func sample(schema any, depth int) any {
	const deep = 5
	s, _ := schema.(map[string]any)
	if depth > deep {
		return nil
	}
	if v, ok := s["const"]; ok {
		return v
	}
	if list, _ := s["enum"].([]any); len(list) > 0 {
		return list[0]
	}
	kind, _ := s["type"].(string)
	switch properties, _ := s["properties"].(map[string]any); {
	case kind == "object", properties != nil:
		object := map[string]any{}
		for name, p := range properties {
			object[name] = sample(p, depth+1)
		}
		return object
	case kind == "array":
		return []any{sample(s["items"], depth+1)}
	case kind == "integer", kind == "number":
		return int64(1)
	case kind == "boolean":
		return true
	case strings.HasPrefix(kind, "n"):
		return nil
	}
	return "text"
}
