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
	d.text([]string{"name"}, a.Name, b.Name)
	d.text([]string{"description"}, a.Description, b.Description)
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

// text compares texts; an empty text equals a missing one.
func (d *diff) text(path []string, before, after string) {
	switch {
	case before == after:
	case before == "":
		d.add(Added, path, nil, after)
	case after == "":
		d.add(Removed, path, before, nil)
	default:
		d.add(Changed, path, before, after)
	}
}

// value compares other values.
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
		at := func(field string) []string { return append(slices.Clone(path), field) }
		d.text(at("description"), before.Description, after.Description)
		d.player(at, before, after)
		d.text(at("goal"), before.Goal, after.Goal)
		if !slices.Equal(before.Capabilities, after.Capabilities) {
			d.add(Changed, at("capabilities"), before.Capabilities, after.Capabilities)
		}
		d.text(at("procedure"), before.Procedure, after.Procedure)
		d.text(at("output"), before.Output, after.Output)
		d.text(at("extractPrompt"), before.ExtractPrompt, after.ExtractPrompt)
		role := path[len(path)-1]
		d.schema(at("schema"), a.Schemas[role], b.Schemas[role])
	})
}

// inputs compares the declared inputs.
func (d *diff) inputs(a, b workflow.Definition) {
	either(d, []string{"inputs"}, keys(a.Inputs, b.Inputs), a.Inputs, b.Inputs, func(path []string, before,
		after protocol.Input) {
		name := path[len(path)-1]
		d.value(append(slices.Clone(path), "schema"), a.InputSchemas[name], b.InputSchemas[name])
		d.value(append(slices.Clone(path), "default"), before.Default, after.Default)
		d.text(append(slices.Clone(path), "description"), before.Description, after.Description)
	})
}

// player compares the players of a role.
func (d *diff) player(at func(string) []string, before, after protocol.Role) {
	if !slices.Equal(before.Run, after.Run) {
		d.add(opOf(len(before.Run), len(after.Run)), at("run"), before.Run, after.Run)
	}
	d.text(at("run"), before.Script, after.Script)
	d.value(at("shell"), before.Shell, after.Shell)
	d.value(at("env"), before.Env, after.Env)
	if before.Person != after.Person {
		d.add(Changed, at("person"), before.Person, after.Person)
	}
	d.text(at("workflow"), string(before.Workflow), string(after.Workflow))
	d.value(at("vars"), before.Inputs, after.Inputs)
	d.value(at("all"), before.All, after.All)
	d.value(at("each"), before.Each, after.Each)
	d.text(at("join"), before.Join, after.Join)
	d.number(at("parallel"), before.Parallel, after.Parallel)
	d.text(at("workspace"), before.Workspace, after.Workspace)
	if before.Merge != after.Merge {
		d.add(Changed, at("merge"), before.Merge, after.Merge)
	}
	d.text(at("parse"), string(before.Parse), string(after.Parse))
	d.number(at("timeoutMs"), int(before.TimeoutMs), int(after.TimeoutMs))
}

// opOf returns the kind of change from the counts before and after.
func opOf(before, after int) Op {
	switch {
	case before == 0:
		return Added
	case after == 0:
		return Removed
	}
	return Changed
}

func (d *diff) conditions(a, b map[string]protocol.Condition) {
	either(d, []string{"conditions"}, keys(a, b), a, b, func(path []string, before, after protocol.Condition) {
		d.text(append(slices.Clone(path), "description"), before.Description, after.Description)
		d.text(append(slices.Clone(path), "expression"), before.Expression, after.Expression)
	})
}

// limits compares limits; 0 means none.
func (d *diff) limits(a, b *protocol.Limits) {
	before, after := *cmp.Or(a, &protocol.Limits{}), *cmp.Or(b, &protocol.Limits{})
	if (a == nil) != (b == nil) && before == after { // limits: {} is stored as such
		d.add(Changed, []string{"limits"}, a, b)
		return
	}
	for _, x := range protocol.AllLimits() {
		d.number([]string{"limits", x.Stored}, x.Get(before), x.Get(after))
	}
}

// number compares two numbers of one type; 0 means none.
func (d *diff) number(path []string, before, after any) {
	switch {
	case before == after:
	case reflect.ValueOf(before).IsZero():
		d.add(Added, path, nil, after)
	case reflect.ValueOf(after).IsZero():
		d.add(Removed, path, before, nil)
	default:
		d.add(Changed, path, before, after)
	}
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
		d.text(append(slices.Clone(path), "role"), before.Role, after.Role)
		d.text(append(slices.Clone(path), "prompt"), before.Prompt, after.Prompt)
		d.text(append(slices.Clone(path), "location"), before.Location, after.Location)
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
