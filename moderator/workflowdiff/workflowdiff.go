// Package workflowdiff compares two workflows by meaning: roles, their schemas, edges, conditions, limits. It
// ignores the order in a file unless it matters, as in transition lists and in stored lists.
//
// Two definitions without differences are stored as the same node, provided that the store sets their
// schemas' titles.
package workflowdiff

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
)

// Op is the kind of a change.
type Op string

// The kinds of changes.
const (
	Added   Op = "added"
	Removed Op = "removed"
	Changed Op = "changed"
)

// Change is one difference. Path identifies the part: ["roles", role, field], ["roles", role, "schema",
// status or field …], ["graph", node, status or condition, field], ["conditions", name, field], ["limits",
// field].
type Change struct {
	Op   Op       `json:"op"`
	Path []string `json:"path"`
	Old  any      `json:"old,omitempty"`
	New  any      `json:"new,omitempty"`
}

// Compare lists the changes from a to b: first those of the whole workflow, then roles in graph order,
// conditions, edges and limits.
func Compare(a, b workflow.Definition) []Change {
	d := &diff{changes: []Change{}}
	d.field([]string{"name"}, reflect.ValueOf(a.Name), reflect.ValueOf(b.Name))
	d.field([]string{"description"}, reflect.ValueOf(a.Description), reflect.ValueOf(b.Description))
	d.inputs(a, b)
	d.roles(a, b)
	d.conditions(a.Conditions, b.Conditions)
	d.graph(a.Workflow, b.Workflow)
	d.limits(a.Limits, b.Limits)
	return d.changes
}

type diff struct{ changes []Change }

func (d *diff) add(op Op, path []string, before, after any) {
	d.changes = append(d.changes, Change{Op: op, Path: slices.Clone(path), Old: before, New: after})
}

// fields compares two structs of one type by the names of their fields in a workflow file.
func (d *diff) fields(path []string, a, b any) {
	before, after := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range before.NumField() {
		name, _, _ := strings.Cut(before.Type().Field(i).Tag.Get("json"), ",")
		if written := map[string]string{"script": "run", "inputs": "vars"}[name]; written != "" {
			name = written
		}
		d.field(append(slices.Clone(path), name), before.Field(i), after.Field(i))
	}
}

// field compares two values of one type. A zero value is a missing one.
func (d *diff) field(path []string, before, after reflect.Value) {
	value := func(v reflect.Value) any {
		if v.Kind() == reflect.String {
			return v.String()
		}
		return v.Interface()
	}
	switch {
	case reflect.DeepEqual(before.Interface(), after.Interface()):
	case before.IsZero():
		d.add(Added, path, nil, value(after))
	case after.IsZero():
		d.add(Removed, path, value(before), nil)
	default:
		d.add(Changed, path, value(before), value(after))
	}
}

// value compares values that are never missing.
func (d *diff) value(path []string, before, after any) {
	if !reflect.DeepEqual(before, after) {
		d.add(Changed, path, before, after)
	}
}

// either reports the names that only one side has and calls both for the others.
func either[V any](d *diff, path []string, names []string, before, after map[string]V,
	both func(path []string, before, after V)) {
	for _, name := range names {
		at := append(slices.Clone(path), name)
		was, had := before[name]
		is, has := after[name]
		switch {
		case had && has:
			both(at, was, is)
		case had:
			d.add(Removed, at, was, nil)
		case has:
			d.add(Added, at, nil, is)
		}
	}
}

// union lists the names of b in their order, then those that only a has.
func union(b, a []string) []string {
	names := slices.Clone(b)
	seen := map[string]bool{}
	for _, n := range b {
		seen[n] = true
	}
	for _, n := range a {
		if !seen[n] {
			names = append(names, n)
		}
	}
	return names
}

func keys[V any](a, b map[string]V) []string {
	return union(slices.Sorted(maps.Keys(b)), slices.Sorted(maps.Keys(a)))
}

func (d *diff) roles(a, b workflow.Definition) {
	names := union(flow.Roles(b.Workflow), flow.Roles(a.Workflow))
	either(d, []string{"roles"}, names, a.Roles, b.Roles, func(path []string, before, after protocol.Role) {
		d.fields(path, before, after)
		role := path[len(path)-1]
		d.schema(append(slices.Clone(path), "schema"), a.Schemas[role], b.Schemas[role])
	})
}

// inputs compares the declared inputs.
func (d *diff) inputs(a, b workflow.Definition) {
	either(d, []string{"inputs"}, keys(a.Inputs, b.Inputs), a.Inputs, b.Inputs, func(path []string, before,
		after protocol.Input) {
		name := path[len(path)-1]
		d.value(append(slices.Clone(path), "schema"), a.InputSchemas[name], b.InputSchemas[name])
		d.fields(path, before, after)
	})
}

func (d *diff) conditions(a, b map[string]protocol.Condition) {
	either(d, []string{"conditions"}, keys(a, b), a, b, func(path []string, before, after protocol.Condition) {
		d.fields(path, before, after)
	})
}

// limits compares limits; 0 means none.
func (d *diff) limits(a, b *protocol.Limits) {
	before, after := *cmp.Or(a, &protocol.Limits{}), *cmp.Or(b, &protocol.Limits{})
	if (a == nil) != (b == nil) && before == after { // limits: {} is stored as such
		d.add(Changed, []string{"limits"}, a, b)
		return
	}
	d.fields([]string{"limits"}, before, after)
}

func (d *diff) graph(a, b protocol.Workflow) {
	names := []string{protocol.StartNode}
	names = union(names, union(flow.Roles(b), flow.Roles(a)))
	names = union(names, keys(a.Graph, b.Graph))
	for _, name := range names {
		path := []string{"graph", name}
		before, had := a.Graph[name]
		after, has := b.Graph[name]
		switch {
		case had && has && (before.Transitions != nil) != (after.Transitions != nil):
			d.add(Changed, path, before, after)
		case had && has || len(flow.Ways(a, name))+len(flow.Ways(b, name)) > 0:
			d.ways(path, flow.Ways(a, name), flow.Ways(b, name))
		case had: // a node without edges
			d.add(Removed, path, before, nil)
		case has:
			d.add(Added, path, nil, after)
		}
	}
}

// ways compares the outgoing edges of a node, matched by status or condition.
func (d *diff) ways(path []string, a, b []flow.Way) {
	aKeys, aByKey := byCase(a)
	bKeys, bByKey := byCase(b)
	either(d, path, union(bKeys, aKeys), aByKey, bByKey, func(path []string, before, after protocol.Edge) {
		d.fields(path, before, after)
	})
	was := slices.DeleteFunc(aKeys, func(k string) bool { _, ok := bByKey[k]; return !ok })
	is := slices.DeleteFunc(bKeys, func(k string) bool { _, ok := aByKey[k]; return !ok })
	if !slices.Equal(was, is) { // only in lists: the ways of a map are sorted
		d.add(Changed, append(slices.Clone(path), "(order)"), was, is)
	}
}

// byCase keys each way by its status or condition; duplicate conditions get a number.
func byCase(ways []flow.Way) ([]string, map[string]protocol.Edge) {
	var names []string
	edges := map[string]protocol.Edge{}
	for _, w := range ways {
		name := w.Status
		if w.Number > 0 {
			name = cmp.Or(w.Condition, "(otherwise)")
		}
		unique := name
		for n := 2; ; n++ {
			if _, taken := edges[unique]; !taken {
				break
			}
			unique = fmt.Sprintf("%s (%d)", name, n)
		}
		names = append(names, unique)
		edges[unique] = w.Edge
	}
	return names, edges
}

// schema compares two JSON Schemas: variants of oneOf by status, objects by field, and anything else as a
// whole.
func (d *diff) schema(path []string, a, b any) {
	if reflect.DeepEqual(a, b) {
		return
	}
	before, wasObject := a.(map[string]any)
	after, isObject := b.(map[string]any)
	if !wasObject || !isObject {
		d.value(path, a, b)
		return
	}
	found := len(d.changes)
	aVariants, bVariants := variants(before), variants(after)
	if aVariants != nil && bVariants != nil {
		either(d, path, keys(aVariants, bVariants), aVariants, bVariants, d.schema)
		before, after = without(before, "oneOf"), without(after, "oneOf")
	}
	d.object(path, before, after)
	if len(d.changes) == found { // an order that is stored
		d.add(Changed, append(slices.Clone(path), "(order)"), a, b)
	}
}

// object compares object schemas.
func (d *diff) object(path []string, a, b map[string]any) {
	aFields, bFields := fields(a), fields(b)
	either(d, path, keys(aFields, bFields), aFields, bFields, d.schema)
	aRequired, bRequired := required(a), required(b)
	for _, field := range keys(aRequired, bRequired) {
		at := append(slices.Clone(path), field, "required")
		switch {
		case !aRequired[field]:
			d.add(Added, at, nil, true)
		case !bRequired[field]:
			d.add(Removed, at, true, nil)
		}
	}
	a, b = without(a, "properties", "required"), without(b, "properties", "required")
	either(d, path, keys(a, b), a, b, func(path []string, before, after any) {
		if key := path[len(path)-1]; key == "items" {
			d.schema(path, before, after)
			return
		}
		d.value(path, before, after)
	})
}

// variants returns the oneOf variants by status, or nil unless all have one.
func variants(schema map[string]any) map[string]any {
	list, _ := schema["oneOf"].([]any)
	byStatus := map[string]any{}
	for _, v := range list {
		variant, _ := v.(map[string]any)
		status, _ := fields(variant)[protocol.StatusKey].(map[string]any)
		name, ok := status["const"].(string)
		if _, twice := byStatus[name]; !ok || twice {
			return nil
		}
		byStatus[name] = v
	}
	if len(byStatus) == 0 {
		return nil
	}
	return byStatus
}

func fields(schema map[string]any) map[string]any {
	f, _ := schema["properties"].(map[string]any)
	return f
}

func required(schema map[string]any) map[string]bool {
	list, _ := schema["required"].([]any)
	set := map[string]bool{}
	for _, v := range list {
		if name, ok := v.(string); ok {
			set[name] = true
		}
	}
	return set
}

func without(m map[string]any, keys ...string) map[string]any {
	m = maps.Clone(m)
	for _, k := range keys {
		delete(m, k)
	}
	return m
}
