package workflowdiff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
)

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
		case had: // a node that leads nowhere
			d.add(Removed, path, before, nil)
		case has:
			d.add(Added, path, nil, after)
		}
	}
}

// ways compares the ways on from a node: each with the one that is taken in the
// same case.
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
	if !slices.Equal(was, is) { // only in lists: ways of a map are sorted
		d.add(Changed, append(slices.Clone(path), "(order)"), was, is)
	}
}

// byCase names each way by its status or condition; a condition that stands
// twice gets a number.
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
