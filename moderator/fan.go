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

// A role can be played by child threads: by a run of another workflow, by several roles at once, or by one
// role for each item of a list. The chain alone determines the children, so nothing else has to record them.

// Child is a thread that plays part of a role.
type Child struct {
	Key      string        // unique among the children of its role
	Role     string        // role of the same workflow; "" if it runs Workflow
	Workflow protocol.Hash // "" if it plays Role
	Prompt   string        // rendered
	Inputs   map[string]any
	Item     any // list item; only for a role with "each"
}

// ItemVariable is the template variable that holds a child's item.
const ItemVariable = "item"

// MaxChildren is the maximum number of children of one role.
const MaxChildren = 10_000

// FanError means that the children of a role, or their joined result, can't be determined.
type FanError struct {
	Role    string
	Message string
	Err     error
}

func (e *FanError) Error() string {
	text := fmt.Sprintf("roles[%s]: %s", e.Role, e.Message)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *FanError) Unwrap() error { return e.Err }

// fan turns a decision to run a role into one to start the role's children, if it has any.
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

// hasPart reports whether the condition of a part of a role holds.
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

// fanOut creates a child for each item. Equal items get numbered keys, so the keys don't depend on the order
// of the other items.
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

// itemsOf returns the list of items of an "each" role. JSONata doesn't distinguish a single value from a list
// with one item.
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
		return nil, &FanError{Role: role, Message: fmt.Sprintf("each.of returned %d items; the limit (max) is %d", len(items),
			most)}
	}
	return items, nil
}

// missing returns the error for an expression that has no value because it reads a field that the last answer
// doesn't have. An expression that finds nothing in an existing list isn't an error.
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

// valueOf evaluates an expression over the context of conditions and the values in more.
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

// childOf renders a child. Without its own prompt, the child gets otherwise, then its role's description,
// then the task.
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

// inputsFor renders the inputs of a child. A text that consists of a single variable becomes the variable's
// value, of any type.
func inputsFor(s State, at place, field string, inputs map[string]any, stack []any) (map[string]any, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	value, err := s.rendered(inputs, stack)
	if err != nil {
		return nil, templateError(at, field+".vars", "", err)
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

// RoleWorkflow returns the workflow of a child that plays one role of another workflow. It keeps the
// workflow's name, so the configuration of its roles applies, and contains only that role.
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

// Result is the outcome of a child.
type Result struct {
	Key    string
	Item   any
	Status string   // [JoinDone] or [JoinFailed]
	Output any      // answer of its last step; nil without steps
	Error  string   // why it failed
	Files  []string // paths changed in its worktree; nil without a worktree
}

// The statuses of a result, and of a role without a join expression.
const (
	JoinDone   = "done"
	JoinFailed = "failed"
	// JoinConflict is the status of a role whose children's files can't be merged.
	JoinConflict = "conflict"
)

// JoinSchema returns the schema of a role with children but without a schema of its own.
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

// MergeSchema returns [JoinSchema] for a role that merges its children's changes.
func MergeSchema() map[string]any {
	s := JoinSchema()
	properties, _ := s["properties"].(map[string]any)
	properties[protocol.StatusKey] = map[string]any{"type": "string", "enum": []any{JoinDone, JoinFailed, JoinConflict}}
	properties["files"] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	s["required"] = []any{protocol.StatusKey}
	return s
}

// Join returns the answer of a role with children. The role's expression computes it from the results and the
// state that they started from. Without an expression it is the list of results, or, if one other workflow
// plays the role and own is true (the role has its own schema), the answer of that workflow.
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

// joined evaluates the expression that gives a role's answer.
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

// Conflicted returns the answer of a role whose children changed the same parts of files. None of their
// changes are merged.
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
