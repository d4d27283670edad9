// Package workflowdiff compares two workflows by what they mean: roles, what
// they must deliver, edges, conditions, limits. The order in which a file writes
// them plays no part, except where it has a meaning: in lists of transitions and
// in whatever is stored as a list.
//
// Two definitions without a change between them are stored as the same node, as
// long as their schemas are titled by the store.
package workflowdiff

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
)

// Op is what happened to a part.
type Op string

// The operations.
const (
	Added   Op = "added"
	Removed Op = "removed"
	Changed Op = "changed"
)

// Change is one difference. Path leads to the part: ["roles", role, field],
// ["roles", role, "schema", status or field …], ["graph", node, status or
// condition, field], ["conditions", name, field], ["limits", field].
type Change struct {
	Op   Op       `json:"op"`
	Path []string `json:"path"`
	Old  any      `json:"old,omitempty"`
	New  any      `json:"new,omitempty"`
}

// Compare lists what must change in a to make it b: what concerns the whole
// first, then roles in the order of the graph, conditions, edges and limits.
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

// text compares texts; an empty one is as good as none.
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

// value compares anything else.
func (d *diff) value(path []string, before, after any) {
	if !reflect.DeepEqual(before, after) {
		d.add(Changed, path, before, after)
	}
}

// either walks through the names of both sides and reports those which only one
// has; both is called for the others.
func either[V any](d *diff, path []string, names []string, before, after map[string]V, both func(path []string, before, after V)) {
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

// inputs compares what a run is given.
func (d *diff) inputs(a, b workflow.Definition) {
	either(d, []string{"inputs"}, keys(a.Inputs, b.Inputs), a.Inputs, b.Inputs, func(path []string, before, after protocol.Input) {
		name := path[len(path)-1]
		d.value(append(slices.Clone(path), "schema"), a.InputSchemas[name], b.InputSchemas[name])
		d.value(append(slices.Clone(path), "default"), before.Default, after.Default)
		d.text(append(slices.Clone(path), "description"), before.Description, after.Description)
	})
}

// player compares who plays a role.
func (d *diff) player(at func(string) []string, before, after protocol.Role) {
	if !slices.Equal(before.Run, after.Run) {
		d.add(opOf(len(before.Run), len(after.Run)), at("run"), before.Run, after.Run)
	}
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

// opOf is what happened to a part that has so many parts now.
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

// limits compares limits; 0 is none.
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

// number compares two numbers of one type; 0 is none.
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
