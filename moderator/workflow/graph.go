package workflow

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// checkRoles checks the names of the roles, and that each has a node.
func (d *draft) checkRoles() {
	parts := d.played()
	for _, r := range d.roles {
		if problem := RoleNameProblem(r.name); problem != "" {
			d.add(r.pos, "", "the role name %s %s", quote(r.name), problem)
			continue
		}
		if d.hasGraph && !d.lostNodes && d.nodeByName[r.name] == nil && !parts[r.name] {
			d.add(r.pos, "add to the graph: "+r.name+": {_: {role: …}}, or remove the role",
				"role %s has no node in the graph: nothing would follow it", quote(r.name))
		}
	}
}

// checkGraph checks the nodes and where their edges lead.
func (d *draft) checkGraph() {
	if !d.hasGraph {
		return
	}
	d.checkStart()
	for _, n := range d.nodes {
		switch {
		case n.name == protocol.StartNode:
		case n.name == protocol.EndNode || n.name == protocol.SuspendNode:
			d.add(n.pos, "remove the node", "%s cannot have edges: a thread ends or waits there", n.name)
		case d.roleByName[n.name] == nil && n.isEdge():
			d.add(n.pos, "indent it, with what is in it, below its node", "%s looks like an edge, but stands where a node must", quote(n.name))
			continue
		case d.roleByName[n.name] == nil && !d.lostRoles:
			names := d.roleNames
			if d.nodeByName[protocol.StartNode] == nil {
				names = append(slices.Clip(names), protocol.StartNode)
			}
			d.add(n.pos, d.didYouMean(n.name, names, "the roles are"), "the graph has a node %s, but there is no such role", quote(n.name))
		}
		for _, e := range n.edges {
			d.checkTarget(n, e)
		}
	}
}

// isEdge reports that a node has nothing but keys of an edge: it lacks spaces.
func (n *nodeDraft) isEdge() bool {
	return !n.list && len(n.edges) > 0 && !slices.ContainsFunc(n.edges, func(e *edgeDraft) bool {
		return !slices.Contains([]string{"role", "prompt", "location"}, e.status)
	})
}

// misspeltStart reports that a node must be meant for $START, and none is it.
func (d *draft) misspeltStart() bool {
	return d.nodeByName[protocol.StartNode] == nil && slices.ContainsFunc(d.nodes, func(n *nodeDraft) bool {
		return strings.EqualFold(strings.Trim(n.name, "$ "), strings.Trim(protocol.StartNode, "$"))
	})
}

// checkStart checks that there is exactly one way to begin.
func (d *draft) checkStart() {
	start := d.nodeByName[protocol.StartNode]
	if d.misspeltStart() {
		return // said of that node
	}
	if start == nil {
		d.add(d.graphPos, "add $START: {_: {role: …}}", "the graph has no $START")
		return
	}
	if start.list {
		return
	}
	begins := 0
	for _, e := range start.edges {
		switch e.status {
		case protocol.DefaultStatus, protocol.StartAlias:
			begins++
			if begins == 2 {
				d.add(e.pos, "keep one of them", "$START has both %q and %q, which mean the same", protocol.DefaultStatus, protocol.StartAlias)
			}
		case protocol.ResumeStatus:
		default:
			d.add(e.pos, "name the edge _", "$START has an edge %s, but nobody has answered a status yet", quote(e.status))
		}
	}
	if begins == 0 && !d.incomplete {
		d.add(start.pos, "add $START: {_: {role: …}}", "$START needs exactly one edge %q", protocol.DefaultStatus)
	}
}

// checkTarget checks that an edge leads somewhere.
func (d *draft) checkTarget(n *nodeDraft, e *edgeDraft) {
	target := e.edge.Role
	where := n.at(e)
	switch {
	case target == protocol.SuspendNode && n.name == protocol.StartNode:
		d.add(e.target, "let a role ask", "a workflow cannot start with %s: there is no role to resume", target)
	case target == protocol.EndNode, target == protocol.SuspendNode:
	case target == protocol.StartNode:
		d.add(e.target, "name the role that shall be next", "%s leads to %s, which is not a role", where, target)
	case d.roleByName[target] == nil && !d.lostRoles:
		d.add(e.target, d.didYouMean(target, d.targets, "there are"),
			"%s leads to %s, but there is no such role", where, quote(target))
	}
}
