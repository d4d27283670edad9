package workflow

import (
	"cmp"
	"slices"
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
		d.Add(n.Pos, "graph: {$START: {_: {role: …}}, …}", "graph must be a mapping from role to edges, not %s",
			kindOf(n))
		d.incomplete = true
		return
	}
	d.hasGraph = true
	for _, e := range n.Entries {
		node := &nodeDraft{name: e.Key, pos: e.Pos, short: d.short[e.Key]}
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
		node.list = true
		d.readEdges(node, "", n, "graph["+node.name+"]")
	case n.Kind == yamldoc.Mapping:
		for _, e := range n.Entries {
			if e.Value.Kind == yamldoc.Sequence && e.Value.Tag == "" {
				d.readGuarded(node, e)
				continue
			}
			d.addEdge(node, d.readEdge(node, e))
		}
	default:
		d.Add(n.Pos, "write the next role, or a mapping from status to edge",
			"graph[%s] must be a role, a mapping from status to edge, or a list of edges, not %s", node.name, kindOf(n))
		d.incomplete = true
	}
}

// addEdge adds an edge; nil stands for an unreadable one.
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
		{key: "role"}, {key: "prompt"}, {key: "location"}, {key: "to", older: true}, {key: "when", older: true},
		{key: "condition", older: true},
	})
}

// readTarget reads the target of an edge: a mapping, or only a role name. It returns nil without a name.
func (d *draft) readTarget(edge *edgeDraft, n *yamldoc.Node, what string, keys []field) *edgeDraft {
	switch {
	case isUnread(n):
		return nil
	case isNull(n):
		d.Add(edge.pos, "add the next role, or "+protocol.EndNode, "%s has no target", what)
		return nil
	case n.Kind == yamldoc.Scalar:
		target, ok := d.text(n, what)
		edge.edge.Role, edge.target = target, n.Pos
		return keepIf(ok, edge)
	case n.Kind != yamldoc.Mapping:
		d.Add(n.Pos, "", "%s must be an edge {role, prompt, location}, not %s", what, kindOf(n))
		return nil
	}
	m := d.mapping(n, edge.pos, what, keys)
	role := cmp.Or(m["role"], m["to"])
	if role == nil {
		d.Add(edge.pos, "add role: the next role, or "+protocol.EndNode, "%s has no \"role\"", what)
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
		d.Add(n.Pos, "remove it to use the role's description", "prompt of %s is blank", what)
	default:
		edge.edge.Prompt, edge.prompt = text, n
	}
}

func (d *draft) readLocation(edge *edgeDraft, n *yamldoc.Node, what string) {
	text, ok := d.text(n, "location of "+what)
	switch {
	case !ok, text == "":
	case strings.TrimSpace(text) == "":
		d.Add(n.Pos, "remove it to use the thread's directory", "location of %s is blank", what)
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

// checkRoles checks the names of the roles, and that each has a node.
func (d *draft) checkRoles() {
	parts := d.played()
	for _, r := range d.roles {
		if problem := RoleNameProblem(r.name); problem != "" {
			d.Add(r.pos, "", "the role name %s %s", quote(r.name), problem)
			continue
		}
		if d.hasGraph && !d.lostNodes && d.nodeByName[r.name] == nil && !parts[r.name] {
			d.Add(r.pos, "add to the graph: "+r.name+": {_: {role: …}}, or remove the role",
				"role %s has no node in the graph", quote(r.name))
		}
	}
}

// checkGraph checks the nodes and the targets of their edges.
func (d *draft) checkGraph() {
	if !d.hasGraph {
		return
	}
	d.checkStart()
	for _, n := range d.nodes {
		switch {
		case n.name == protocol.StartNode:
		case isReserved(n.name):
			d.Add(n.pos, "remove the node", "%s cannot have edges", n.name)
		case d.roleByName[n.name] == nil && n.isEdge() && len(nearest(n.name, d.roleNames)) == 0:
			d.Add(n.pos, "indent it and its content below its node",
				"%s looks like an edge in the place of a node", quote(n.name))
			continue
		case d.roleByName[n.name] == nil && !d.lostRoles:
			names := d.roleNames
			if d.nodeByName[protocol.StartNode] == nil {
				names = append(slices.Clip(names), protocol.StartNode)
			}
			d.Add(n.pos, d.DidYouMean(n.name, names, "the roles are"), "the graph has a node for unknown role %s",
				quote(n.name))
		}
		for _, e := range n.edges {
			d.checkTarget(n, e)
		}
	}
}

// isEdge reports whether a node is probably an edge with missing spaces.
func (n *nodeDraft) isEdge() bool {
	return n.short && len(n.edges) > 0 && !strings.HasPrefix(n.name, "$")
}

// misspeltStart reports whether a node is probably a misspelling of $START, which is missing.
func (d *draft) misspeltStart() bool {
	return d.nodeByName[protocol.StartNode] == nil && slices.ContainsFunc(d.nodes, func(n *nodeDraft) bool {
		return strings.EqualFold(strings.Trim(n.name, "$ "), strings.Trim(protocol.StartNode, "$"))
	})
}

// checkStart checks that there is exactly one start.
func (d *draft) checkStart() {
	start := d.nodeByName[protocol.StartNode]
	if d.misspeltStart() {
		return // reported at that node
	}
	if start == nil {
		d.Add(d.graphPos, "add $START: {_: {role: …}}", "the graph has no $START")
		return
	}
	if start.list {
		return
	}
	begin := ""
	for _, e := range start.edges {
		switch e.status {
		case protocol.DefaultStatus, protocol.StartAlias:
			if begin != "" && begin != e.status { // one status can have several edges
				d.Add(e.pos, "keep only one", "$START has both %q and %q, which are the same", protocol.DefaultStatus,
					protocol.StartAlias)
			}
			begin = e.status
		case protocol.ResumeStatus:
			if start.guarded { // only a map has this edge, see moderator.Resume
				d.Add(e.pos, "write one edge, without a list", "%s would never be taken: $START has a list of edges", start.at(e))
			}
		default:
			d.Add(e.pos, "name the edge _", "$START has an edge %s, but no role has answered yet", quote(e.status))
		}
	}
	if begin == "" && !d.incomplete {
		d.Add(start.pos, "add $START: {_: {role: …}}", "$START needs exactly one edge %q", protocol.DefaultStatus)
	}
}

// checkTarget checks that an edge's target exists.
func (d *draft) checkTarget(n *nodeDraft, e *edgeDraft) {
	target := e.edge.Role
	where := n.at(e)
	switch {
	case target == protocol.SuspendNode && n.name == protocol.StartNode:
		d.Add(e.target, "let a role ask", "a workflow cannot start with %s", target)
	case target == protocol.FailNode:
		d.language = protocol.Language3
	case target == protocol.EndNode, target == protocol.SuspendNode:
	case target == protocol.StartNode:
		d.Add(e.target, "use the next role", "%s refers to %s, which is not a role", where, target)
	case d.roleByName[target] == nil && !d.lostRoles:
		d.Add(e.target, d.DidYouMean(target, d.targets, "there are"),
			"%s refers to unknown role %s", where, quote(target))
	}
}

// checkReach checks that every role can be reached and every thread can end. It needs the whole graph.
func (d *draft) checkReach() {
	if d.incomplete || d.misspeltStart() {
		return
	}
	parts := d.played()
	for _, r := range d.roles {
		if !d.isReached(r.name) && !parts[r.name] && !isReserved(r.name) {
			d.Add(r.pos, "add an edge to it, or remove it", "role %s is unreachable from $START", quote(r.name))
		}
	}
	d.checkEnd()
}

// checkEnd reports the nodes from which no path leads to $END or $FAIL: a thread there runs until it hits its
// limits.
func (d *draft) checkEnd() {
	start := d.nodeByName[protocol.StartNode]
	if start == nil || len(start.edges) == 0 {
		return
	}
	ending := d.ending()
	if !ending[protocol.StartNode] {
		d.Add(start.pos, "add an edge to $END", "no path from $START to $END or $FAIL: %s", d.wander(start))
		return
	}
	for _, n := range d.nodes {
		if d.isReached(n.name) && !ending[n.name] && !isReserved(n.name) {
			d.Add(n.pos, "add an edge to $END", "no path from %s to $END or $FAIL: %s", quote(n.name), d.wander(n))
		}
	}
}

// ending returns the nodes from which a path leads to $END or $FAIL. A missing target counts as an end: it is
// already reported, and fixing it can complete the path.
func (d *draft) ending() map[string]bool {
	before := map[string][]string{}
	ending := map[string]bool{}
	var next []string
	for _, n := range d.nodes {
		for _, e := range n.edges {
			target := e.edge.Role
			ends := target == protocol.EndNode || target == protocol.FailNode
			if ends || target != protocol.SuspendNode && d.nodeByName[target] == nil {
				next = append(next, n.name)
			} else {
				before[target] = append(before[target], n.name)
			}
		}
		if len(n.edges) == 0 {
			next = append(next, n.name) // also already reported
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

// wander formats a path that starts at a node and never ends.
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
