package workflow

import (
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// The older form of workflow files has roles with a "systemPrompt", the graph as
// "moderator: {graph: [{from, transitions}]}", and names agents. It is turned
// into the present form as a tree, before anything else is read, so that only
// this file and older_agents.go know it. Places stay those of the file.

// modernize returns a tree in the present form.
func (d *draft) modernize(root *yamldoc.Node) *yamldoc.Node {
	out := *root
	out.Entries = nil
	for _, e := range root.Entries {
		switch e.Key {
		case "moderator":
			if root.Get("graph") != nil {
				d.add(e.Pos, "keep one of them", `the workflow has both "graph" and "moderator", which mean the same`)
				continue
			}
			e = yamldoc.Entry{Key: "graph", Text: "graph", Pos: e.Pos, Value: d.olderModerator(e)}
			d.older = true
		case "defaultAgent":
			d.defaultAgent, d.older = e.Value, true
			continue
		case "agentOverrides":
			d.agentOverrides, d.older = e.Value, true
			continue
		case "graph":
			e.Value = d.olderGraph(e.Value)
		case "roles":
			e.Value = d.olderRoles(e.Value)
		}
		out.Entries = append(out.Entries, e)
	}
	return &out
}

// olderModerator is the graph in "moderator".
func (d *draft) olderModerator(e yamldoc.Entry) *yamldoc.Node {
	if isUnread(e.Value) || e.Value.Kind == yamldoc.Sequence {
		return d.olderGraph(e.Value)
	}
	if e.Value.Kind != yamldoc.Mapping {
		d.add(e.Value.Pos, "moderator: {graph: [{from: …, transitions: […]}]}", "moderator must be a mapping with a graph, but this is %s", kindOf(e.Value))
		return unread(e.Value)
	}
	m := d.mapping(e.Value, e.Pos, "moderator", []field{
		{key: "graph", required: true, remedy: "a list of {from: …, transitions: […]}"}, {key: "name"},
	})
	if m["graph"] == nil {
		return unread(e.Value)
	}
	return d.olderGraph(m["graph"])
}

// unread is a node that is wrong, and about which nothing more is to be said.
func unread(n *yamldoc.Node) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Scalar, Tag: includeTag, Scalar: "", Pos: n.Pos}
}

// olderGraph turns a list of {from, transitions} into a mapping.
func (d *draft) olderGraph(n *yamldoc.Node) *yamldoc.Node {
	if n.Kind != yamldoc.Sequence {
		return n
	}
	d.older = true
	out, names := &yamldoc.Node{Kind: yamldoc.Mapping, Pos: n.Pos}, map[string]bool{}
	for _, item := range n.Items {
		e, ok := d.olderNode(item)
		switch {
		case !ok:
			d.incomplete, d.lostNodes = true, true
		case names[e.Key]:
			d.add(e.Pos, "put its transitions into one list", "the graph has two nodes from %s", quote(e.Key))
		default:
			names[e.Key] = true
			out.Entries = append(out.Entries, e)
		}
	}
	return out
}

func (d *draft) olderNode(item *yamldoc.Node) (e yamldoc.Entry, ok bool) {
	if isUnread(item) {
		return e, false
	}
	if item.Kind != yamldoc.Mapping {
		d.add(item.Pos, "{from: …, transitions: […]}", "a node of the graph must be a mapping, but this is %s", kindOf(item))
		return e, false
	}
	m := d.mapping(item, item.Pos, "a node of the graph", []field{
		{key: "from", required: true, remedy: "the role that it leads on from, or " + protocol.StartNode},
		{key: "transitions", required: true, remedy: "a list of {to: …, condition: …}"},
	})
	from, transitions := m["from"], m["transitions"]
	name, isText := d.text(from, `"from" of a node`)
	if !isText || transitions == nil {
		return e, false
	}
	if transitions.Kind != yamldoc.Sequence && !isUnread(transitions) {
		d.add(transitions.Pos, "a list of {to: …, condition: …}", "transitions from %s must be a list, but this is %s", quote(name), kindOf(transitions))
		return e, false
	}
	return yamldoc.Entry{Key: name, Text: name, Pos: from.Pos, Value: transitions}, true
}

// olderRoles turns roles with a "systemPrompt" into roles of today.
func (d *draft) olderRoles(n *yamldoc.Node) *yamldoc.Node {
	if n.Kind != yamldoc.Mapping {
		return n
	}
	out := *n
	out.Entries = slices.Clone(n.Entries)
	for i, e := range out.Entries {
		if e.Value.Get("systemPrompt") != nil {
			out.Entries[i].Value = d.olderRole(e)
			d.older = true
		}
	}
	return &out
}

// olderRole gives a role the keys of today: its system prompt says who the agent
// is and how it works, so it becomes the goal. What it also has of today's keys
// stays as it is.
func (d *draft) olderRole(e yamldoc.Entry) *yamldoc.Node {
	role := e.Value
	out := *role
	out.Entries = nil
	for _, f := range role.Entries {
		switch f.Key {
		case "name":
			if name, ok := d.text(f.Value, "name of role "+quote(e.Key)); ok && name != e.Key {
				d.add(f.Value.Pos, "", "role %s has the name %s", quote(e.Key), quote(name))
			}
			continue
		case "systemPrompt":
			if role.Get("goal") != nil {
				d.add(f.Pos, "keep one of them", `role %s has both "goal" and "systemPrompt"`, quote(e.Key))
				continue
			}
			f.Key, f.Text = "goal", "goal"
		case "outputSchema", "schema", "frontmatter", "meta":
			f.Value = titledByID(f.Value)
		}
		out.Entries = append(out.Entries, f)
	}
	for key, value := range map[string]*yamldoc.Node{
		"capabilities": {Kind: yamldoc.Sequence, Pos: e.Pos},
		"procedure":    {Kind: yamldoc.Scalar, Scalar: "", Pos: e.Pos},
		"output":       {Kind: yamldoc.Scalar, Scalar: "", Pos: e.Pos},
	} {
		if role.Get(key) == nil {
			out.Entries = append(out.Entries, yamldoc.Entry{Key: key, Text: key, Pos: e.Pos, Value: value})
		}
	}
	return &out
}

// titledByID makes the "$id" of a schema its title: in a store a schema is known
// by its hash and shown by its title.
func titledByID(schema *yamldoc.Node) *yamldoc.Node {
	out := *schema
	out.Entries = nil
	for _, e := range schema.Entries {
		if e.Key == "$id" {
			if schema.Get("title") != nil {
				continue
			}
			e.Key, e.Text = "title", "title"
		}
		out.Entries = append(out.Entries, e)
	}
	return &out
}
