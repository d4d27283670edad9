package moderator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// A role may be played by threads of their own: by a run of another workflow, by
// several roles at once, or by one for each item of a list. Which those are follows
// from the chain alone, so nothing else has to record it.

// Child is a thread that plays a part of a role.
type Child struct {
	Key      string        // among those of its role
	Role     string        // of the same workflow; "": it runs Workflow
	Workflow protocol.Hash // "": it plays Role
	Prompt   string        // rendered
	Inputs   map[string]any
	Item     any // of each
}

// ItemVariable is what a template calls the item that a child is for.
const ItemVariable = "item"

// MaxChildren bounds how many children a role has at once.
const MaxChildren = 10_000

// FanError means that the children of a role cannot be told.
type FanError struct {
	Role    string
	Message string
	Err     error
}

// Error implements error.
func (e *FanError) Error() string {
	text := fmt.Sprintf("roles[%s]: %s", e.Role, e.Message)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *FanError) Unwrap() error { return e.Err }

// fan makes a decision of one to run a role that has children.
func fan(ctx context.Context, s State, at place, d *Decision, output any) error {
	d.Kind = Fan
	role := s.Workflow.Roles[d.Role]
	stack := view(s.Start, at.status, output)
	switch role.Player() {
	case protocol.PlayedByWorkflow:
		inputs, err := inputsFor(s, at, "roles["+d.Role+"]", role.Inputs, stack)
		d.Children = []Child{{Key: d.Role, Workflow: role.Workflow, Prompt: cmp.Or(d.Prompt, s.Start.Prompt), Inputs: inputs}}
		return err
	case protocol.PlayedByAll:
		for _, key := range slices.Sorted(maps.Keys(role.All)) {
			if plays, err := hasPart(ctx, s, d.Role, key); err != nil {
				return err
			} else if !plays {
				continue
			}
			c, err := childOf(s, at, fmt.Sprintf("roles[%s].all[%s]", d.Role, key), role.All[key], d.Prompt, stack)
			if err != nil {
				return err
			}
			c.Key = key
			d.Children = append(d.Children, c)
		}
		return nil
	case protocol.PlayedByCompute:
		return nil
	}
	return fanOut(ctx, s, at, d, stack)
}

// hasPart reports whether a part of a role is played now.
func hasPart(ctx context.Context, s State, role, key string) (bool, error) {
	when := s.Workflow.Roles[role].All[key].When
	if when == "" {
		return true, nil
	}
	value, defined, err := valueOf(ctx, s, when, nil)
	if err != nil {
		err = &FanError{Role: role, Message: fmt.Sprintf("when of %s (%s)", key, plaintext.Short(when, 200)), Err: err}
	}
	return jsonata.Truthy(value, defined), err
}

// fanOut makes a child for each item. Equal items have numbers after their keys, so
// that the order of the others does not matter.
func fanOut(ctx context.Context, s State, at place, d *Decision, stack []any) error {
	each := s.Workflow.Roles[d.Role].Each
	items, err := itemsOf(ctx, s, d.Role, *each)
	if err != nil {
		return err
	}
	keyOf := s.KeyOf
	if keyOf == nil {
		keyOf = func(any) (string, error) { return "item", nil }
	}
	seen := map[string]int{}
	for i, item := range items {
		key, err := keyOf(item)
		if err != nil {
			return &FanError{Role: d.Role, Message: fmt.Sprintf("item %d", i), Err: err}
		}
		if seen[key]++; seen[key] > 1 {
			key += fmt.Sprintf("-%d", seen[key])
		}
		within := append(slices.Clip(stack), map[string]any{ItemVariable: item})
		c, err := childOf(s, at, "roles["+d.Role+"].each", each.ChildRole, d.Prompt, within)
		if err != nil {
			return err
		}
		c.Key, c.Item = key, item
		d.Children = append(d.Children, c)
	}
	return nil
}

// itemsOf is the list that a role has a child each for. JSONata makes no difference
// between one value and a list of it.
func itemsOf(ctx context.Context, s State, role string, each protocol.EachRole) ([]any, error) {
	value, defined, err := valueOf(ctx, s, each.Of, nil)
	if err != nil {
		return nil, &FanError{Role: role, Message: fmt.Sprintf("each.of (%s)", plaintext.Short(each.Of, 200)), Err: err}
	}
	items, isList := value.([]any)
	switch {
	case !defined:
		return nil, missing(s, role, each.Of)
	case value == nil:
		return nil, nil
	case !isList:
		items = []any{value}
	}
	most := MaxChildren
	if each.Max > 0 {
		most = min(most, each.Max)
	}
	if len(items) > most {
		return nil, &FanError{Role: role, Message: fmt.Sprintf("each.of gives %d items, of at most %d (max)", len(items),
			most)}
	}
	return items, nil
}

// missing is the error of an expression without a value that reads what the last answer
// does not have. Without a value is also what finds nothing in a list that is there.
func missing(s State, role, expression string) error {
	expr, err := jsonata.Parse(expression)
	if err != nil || s.Last == nil {
		return err
	}
	answer, _ := s.Last.Output.(map[string]any)
	for _, p := range expr.Reads().Paths {
		if len(p.Names) < 2 || p.Tested || p.Names[0] != "meta" && p.Names[0] != "output" {
			continue
		}
		if _, has := answer[p.Names[1]]; !has {
			return &FanError{Role: role, Message: fmt.Sprintf("each.of (%s): the answer of role %q has no %q",
				plaintext.Short(expression, 200), s.Last.Role, p.Names[1])}
		}
	}
	return nil
}

// valueOf evaluates an expression over the context of conditions and what else is
// given.
func valueOf(ctx context.Context, s State, expression string,
	more map[string]any) (value any, defined bool, err error) {
	expr, err := jsonata.Parse(expression)
	if err != nil {
		return nil, false, err
	}
	input, err := contextFor(s, expr.Reads())
	if err != nil {
		return nil, false, err
	}
	maps.Copy(input, more)
	bindings, err := s.bindings(expr.Reads())
	if err != nil {
		return nil, false, err
	}
	return expr.Eval(ctx, input, jsonata.Options{Bindings: bindings})
}

// childOf renders what a child is told. Without a prompt of its own that is otherwise, its role's description,
// or the task.
func childOf(s State, at place, field string, c protocol.ChildRole, otherwise string, stack []any) (Child, error) {
	child := Child{Role: c.Role, Workflow: c.Workflow,
		Prompt: cmp.Or(otherwise, s.Workflow.Roles[c.Role].Description, s.Start.Prompt)}
	var err error
	if c.Prompt != "" {
		if child.Prompt, err = renderOver(s, at, field+".prompt", c.Prompt, stack, toModel); err != nil {
			return child, err
		}
	}
	if child.Workflow == "" {
		child.Inputs = s.Start.Inputs
		return child, nil
	}
	child.Inputs, err = inputsFor(s, at, field, c.Inputs, stack)
	return child, err
}

// inputsFor renders the inputs of a child. A text that is nothing but one variable
// stands for its value, of whatever kind that is.
func inputsFor(s State, at place, field string, inputs map[string]any, stack []any) (map[string]any, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	value, err := s.rendered(inputs, stack)
	if err != nil {
		return nil, &TemplateError{Node: at.node, Edge: at.key, Field: field + ".vars", Err: err}
	}
	return value.(map[string]any), nil
}

func (s State) rendered(value any, stack []any) (any, error) {
	switch v := value.(type) {
	case string:
		t, err := mustache.Parse(v)
		if err != nil {
			return nil, err
		}
		seen, err := s.withEarlier(t, stack)
		if err != nil {
			return nil, err
		}
		if value, whole := t.Value(seen...); whole {
			if text, ok := value.(string); ok {
				return withoutLineFeeds(text), nil
			}
			return value, nil
		}
		s.toProgram = true
		text, _, err := s.render(t, stack)
		return text, err
	case []any:
		out := make([]any, len(v))
		var err error
		for i := range v {
			if out[i], err = s.rendered(v[i], stack); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			var err error
			if out[key], err = s.rendered(item, stack); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

// RoleWorkflow is the workflow of a child that plays a role of another workflow: it
// has that one's name, so that what is configured for its roles holds, and nothing
// but the role.
func RoleWorkflow(w protocol.Workflow, role string) protocol.Workflow {
	return protocol.Workflow{
		Name: w.Name, Description: w.Roles[role].Description, Inputs: w.Inputs, Language: w.Language,
		Roles: map[string]protocol.Role{role: w.Roles[role]},
		Graph: map[string]protocol.GraphNode{
			protocol.StartNode: {Edges: map[string]protocol.Edge{protocol.DefaultStatus: {Role: role,
				Prompt: "{{{" + protocol.PromptVariable + "}}}"}}},
			role: {Edges: map[string]protocol.Edge{protocol.DefaultStatus: {Role: protocol.EndNode}}},
		},
	}
}

// Result is what has become of a child.
type Result struct {
	Key    string
	Item   any
	Status string   // [JoinDone] or [JoinFailed]
	Output any      // of its last step; nil: it has none
	Error  string   // why it failed
	Files  []string // paths that it has changed in a worktree of its own; nil: it had none
}

// The statuses of a result, and of a role that does not say how its results are joined.
const (
	JoinDone   = "done"
	JoinFailed = "failed"
	// JoinConflict is that of a role whose children's files cannot be merged.
	JoinConflict = "conflict"
)

// JoinSchema is the schema of a role with children that does not say what they give
// together.
func JoinSchema() map[string]any {
	return map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{protocol.StatusKey, "results"},
		"properties": map[string]any{
			protocol.StatusKey: map[string]any{"type": "string", "enum": []any{JoinDone, JoinFailed}},
			"results": map[string]any{"type": "array", "items": map[string]any{
				"type": "object", "required": []any{"key", "status"},
				"properties": map[string]any{
					"key": map[string]any{"type": "string"}, "item": map[string]any{}, "output": map[string]any{},
					"error":  map[string]any{"type": "string"},
					"status": map[string]any{"type": "string", "enum": []any{JoinDone, JoinFailed}},
				},
			}},
		},
	}
}

// MergeSchema is [JoinSchema] of a role that merges what its children have changed.
func MergeSchema() map[string]any {
	s := JoinSchema()
	properties, _ := s["properties"].(map[string]any)
	properties[protocol.StatusKey] = map[string]any{"type": "string", "enum": []any{JoinDone, JoinFailed, JoinConflict}}
	properties["files"] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	s["required"] = []any{protocol.StatusKey}
	return s
}

// Join is what the results of a role's children are together: what its expression
// makes of them and of the state that they were made from. Without one that is the
// list of them, or, of a role that one other workflow plays and that has a schema of
// its own, what that workflow has answered.
func Join(ctx context.Context, s State, role string, results []Result, own bool) (any, error) {
	list := make([]any, len(results))
	status := JoinDone
	for i, r := range results {
		list[i] = r.value()
		if r.Status != JoinDone {
			status = JoinFailed
		}
	}
	r := s.Workflow.Roles[role]
	switch {
	case r.Compute != "":
		return joined(ctx, s, role, "compute", r.Compute, nil)
	case r.Join == "" && own && r.Player() == protocol.PlayedByWorkflow && len(results) == 1:
		if results[0].Status != JoinDone {
			return nil, &FanError{Role: role, Message: "its workflow has failed", Err: errors.New(results[0].Error)}
		}
		return results[0].Output, nil
	case r.Join == "":
		return map[string]any{protocol.StatusKey: status, "results": list}, nil
	}
	return joined(ctx, s, role, "join", r.Join, map[string]any{"results": list})
}

// joined is the value of the expression that gives a role's answer.
func joined(ctx context.Context, s State, role, field, expression string, more map[string]any) (any, error) {
	value, defined, err := valueOf(ctx, s, expression, more)
	if err == nil && !defined {
		err = errors.New("it has no value")
	}
	if err != nil {
		return nil, &FanError{Role: role, Message: fmt.Sprintf("%s (%s)", field, plaintext.Short(strings.TrimSpace(expression),
			200)), Err: err}
	}
	return value, nil
}

func (r Result) value() map[string]any {
	v := map[string]any{"key": r.Key, "status": r.Status}
	if r.Item != nil {
		v[ItemVariable] = r.Item
	}
	if r.Output != nil {
		v["output"] = r.Output
	}
	if r.Error != "" {
		v["error"] = r.Error
	}
	if r.Files != nil {
		v["files"] = anyList(r.Files)
	}
	return v
}

// Conflicted is what a role gives whose children have changed the same places of files:
// none of it is brought together.
func Conflicted(paths []string) map[string]any {
	return map[string]any{protocol.StatusKey: JoinConflict, "files": anyList(paths)}
}

func anyList(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}
