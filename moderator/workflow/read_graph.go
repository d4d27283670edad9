package workflow

import (
	"cmp"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

func (d *draft) readGraph(n *yamldoc.Node) {
	if n == nil || isUnread(n) {
		d.incomplete = true
		return
	}
	d.graphPos = n.Pos
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "graph: {$START: {_: {role: …}}, …}", "graph must be a mapping from role to edges, but this is %s", kindOf(n))
		d.incomplete = true
		return
	}
	d.hasGraph = true
	for _, e := range n.Entries {
		node := &nodeDraft{name: e.Key, pos: e.Pos}
		d.nodes = append(d.nodes, node)
		d.nodeByName[node.name] = node
		d.readNode(node, e.Value)
	}
}

func (d *draft) readNode(node *nodeDraft, n *yamldoc.Node) {
	switch {
	case isUnread(n):
		d.incomplete = true
	case n.Kind == yamldoc.Sequence:
		d.readTransitions(node, n)
	case n.Kind == yamldoc.Mapping:
		for _, e := range n.Entries {
			d.addEdge(node, d.readEdge(node, e))
		}
	default:
		remedy := "write a map from status to edge: {_: {role: …}}"
		if target, ok := n.Scalar.(string); ok && target != "" {
			remedy = "{_: " + target + "}"
		}
		d.add(n.Pos, remedy, "graph[%s] must be a mapping from status to edge, or a list of transitions, but this is %s", node.name, kindOf(n))
		d.incomplete = true
	}
}

// addEdge adds an edge that was read; nil is one that could not be.
func (d *draft) addEdge(node *nodeDraft, edge *edgeDraft) {
	if edge == nil {
		d.incomplete = true
		return
	}
	node.edges = append(node.edges, edge)
}

// readEdge reads an edge of a map.
func (d *draft) readEdge(node *nodeDraft, e yamldoc.Entry) *edgeDraft {
	edge := &edgeDraft{status: e.Key, pos: e.Pos}
	what := node.at(edge)
	d.checkStatusKey(edge, what)
	if e.Value.Kind == yamldoc.Mapping {
		d.refuseTransitionKeys(e.Value, what)
	}
	return d.readTarget(edge, e.Value, what, []field{
		{key: "role"}, {key: "prompt"}, {key: "location"}, {key: "to"}, {key: "when"}, {key: "condition"},
	})
}

// readTarget reads what an edge leads to: a mapping, or the name of a role
// alone. It returns nil if there is no name.
func (d *draft) readTarget(edge *edgeDraft, n *yamldoc.Node, what string, keys []field) *edgeDraft {
	switch {
	case isUnread(n):
		return nil
	case isNull(n):
		d.add(edge.pos, "name the role that is next, or "+protocol.EndNode, "%s leads nowhere", what)
		return nil
	case n.Kind == yamldoc.Scalar:
		target, ok := d.text(n, what)
		edge.edge.Role, edge.target = target, n.Pos
		return keepIf(ok, edge)
	case n.Kind != yamldoc.Mapping:
		d.add(n.Pos, "", "%s must be an edge {role, prompt, location}, but this is %s", what, kindOf(n))
		return nil
	}
	m := d.mapping(n, edge.pos, what, keys)
	role := cmp.Or(m["role"], m["to"])
	if role == nil {
		d.add(edge.pos, "add role: the role that is next, or "+protocol.EndNode, "%s has no \"role\"", what)
		return nil
	}
	target, ok := d.text(role, "role of "+what)
	edge.edge.Role, edge.target = target, role.Pos
	d.readPrompt(edge, m["prompt"], what)
	d.readLocation(edge, m["location"], what)
	edge.condition = cmp.Or(m["when"], m["condition"])
	return keepIf(ok, edge)
}

func (d *draft) readPrompt(edge *edgeDraft, n *yamldoc.Node, what string) {
	text, ok := d.text(n, "prompt of "+what)
	switch {
	case !ok:
	case strings.TrimSpace(text) == "":
		d.add(n.Pos, "leave it out: then the role's description serves", "prompt of %s is blank", what)
	default:
		edge.edge.Prompt, edge.prompt = text, n
	}
}

func (d *draft) readLocation(edge *edgeDraft, n *yamldoc.Node, what string) {
	text, ok := d.text(n, "location of "+what)
	switch {
	case !ok, text == "":
	case strings.TrimSpace(text) == "":
		d.add(n.Pos, "leave it out: then the thread's directory serves", "location of %s is blank", what)
	default:
		edge.edge.Location, edge.location = text, n
		d.noteOutside(what, text, n.Pos)
	}
}

func keepIf(ok bool, e *edgeDraft) *edgeDraft {
	if !ok {
		return nil
	}
	return e
}
