package workflow

import (
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// checkReach checks that every role can have its turn, and that every thread
// can end. It needs the whole graph.
func (d *draft) checkReach() {
	if d.incomplete || d.misspeltStart() {
		return
	}
	reached := d.reachable()
	parts := d.played()
	for _, r := range d.roles {
		if !reached[r.name] && !parts[r.name] && !isReserved(r.name) {
			d.add(r.pos, "let an edge lead to it, or remove it", "no path leads from $START to role %s", quote(r.name))
		}
	}
	d.checkEnd(reached)
}

// reachable is the set of nodes that edges from $START lead to.
func (d *draft) reachable() map[string]bool {
	reached := map[string]bool{}
	next := []string{protocol.StartNode}
	for len(next) > 0 {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		n := d.nodeByName[name]
		if reached[name] || n == nil {
			reached[name] = true
			continue
		}
		reached[name] = true
		for _, e := range n.edges {
			next = append(next, e.edge.Role)
		}
	}
	return reached
}

// checkEnd reports the nodes from which no path leads to $END: a thread that
// comes there runs into its limits.
func (d *draft) checkEnd(reached map[string]bool) {
	start := d.nodeByName[protocol.StartNode]
	if start == nil || len(start.edges) == 0 {
		return
	}
	ending := d.ending()
	if !ending[protocol.StartNode] {
		d.add(start.pos, "let an edge lead to $END", "no path leads from $START to $END: %s", d.wander(start))
		return
	}
	for _, n := range d.nodes {
		if reached[n.name] && !ending[n.name] && !isReserved(n.name) {
			d.add(n.pos, "let an edge lead to $END", "no path leads from %s to $END: %s", quote(n.name), d.wander(n))
		}
	}
}

// ending is the set of nodes from which a path leads to $END. A target that
// does not exist counts as an end: it is reported already, and who repairs it
// may repair the path.
func (d *draft) ending() map[string]bool {
	before := map[string][]string{}
	ending := map[string]bool{}
	var next []string
	for _, n := range d.nodes {
		for _, e := range n.edges {
			target := e.edge.Role
			if target != protocol.SuspendNode && d.nodeByName[target] == nil || target == protocol.EndNode {
				next = append(next, n.name)
			} else {
				before[target] = append(before[target], n.name)
			}
		}
		if len(n.edges) == 0 {
			next = append(next, n.name) // reported already, too
		}
	}
	for len(next) > 0 {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		if !ending[name] {
			ending[name] = true
			next = append(next, before[name]...)
		}
	}
	return ending
}

// wander shows a path that begins at a node and never ends.
func (d *draft) wander(n *nodeDraft) string {
	const most = 10
	path := []string{n.name}
	seen := map[string]bool{}
	for n != nil && len(n.edges) > 0 && !seen[n.name] {
		seen[n.name] = true
		target := n.edges[0].edge.Role
		if len(path) == most {
			path = append(path, "…")
			break
		}
		path = append(path, target)
		n = d.nodeByName[target]
	}
	return strings.Join(path, " → ")
}
