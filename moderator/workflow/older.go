package workflow

import (
	"slices"

	"github.com/united-workforce/uwf/moderator/workflow/internal/source"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// The older form of workflow files has roles with a "systemPrompt", the graph as "moderator: {graph: [{from,
// transitions}]}", and agents. It is converted to the present form as a tree before anything else is read, so
// only this file knows it. The nodes keep their positions in the file.

// modernize converts a tree to the present form.
func (d *draft) modernize(root *yamldoc.Node) *yamldoc.Node {
	out := *root
	out.Entries = nil
	for _, e := range root.Entries {
		switch e.Key {
		case "moderator":
			if root.Get("graph") != nil {
				d.Add(e.Pos, "keep only one", `the workflow has both "graph" and "moderator", which are the same`)
				continue
			}
			e = yamldoc.Entry{Key: "graph", Text: "graph", Pos: e.Pos, Value: d.olderModerator(e)}
			d.older = true
		case "defaultAgent", "agentOverrides":
			d.assigns, d.older = true, true
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

// olderModerator returns the graph in "moderator".
func (d *draft) olderModerator(e yamldoc.Entry) *yamldoc.Node {
	if isUnread(e.Value) || e.Value.Kind == yamldoc.Sequence {
		return d.olderGraph(e.Value)
	}
	if e.Value.Kind != yamldoc.Mapping {
		d.Add(e.Value.Pos, "moderator: {graph: [{from: …, transitions: […]}]}",
			"moderator must be a mapping with a graph, not %s", kindOf(e.Value))
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

// olderGraph converts a list of {from, transitions} to a mapping.
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
			d.Add(e.Pos, "put its transitions into one list", "the graph has two nodes from %s", quote(e.Key))
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
		d.Add(item.Pos, "{from: …, transitions: […]}", "a graph node must be a mapping, not %s", kindOf(item))
		return e, false
	}
	m := d.mapping(item, item.Pos, "a node of the graph", []field{
		{key: "from", required: true, remedy: "the role before the transitions, or " + protocol.StartNode},
		{key: "transitions", required: true, remedy: "a list of {to: …, condition: …}"},
	})
	from, transitions := m["from"], m["transitions"]
	name, isText := d.text(from, `"from" of a node`)
	if !isText || transitions == nil {
		return e, false
	}
	if transitions.Kind != yamldoc.Sequence && !isUnread(transitions) {
		d.Add(transitions.Pos, "a list of {to: …, condition: …}", "transitions from %s must be a list, not %s",
			quote(name), kindOf(transitions))
		return e, false
	}
	return yamldoc.Entry{Key: name, Text: name, Pos: from.Pos, Value: transitions}, true
}

// olderRoles converts roles with a "systemPrompt" to the present form.
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

// olderRole converts a role. Its system prompt describes who the agent is and how it works, so it becomes the
// goal. Keys of the present form stay unchanged.
func (d *draft) olderRole(e yamldoc.Entry) *yamldoc.Node {
	role := e.Value
	out := *role
	out.Entries = nil
	for _, f := range role.Entries {
		switch f.Key {
		case "name":
			if name, ok := d.text(f.Value, "name of role "+quote(e.Key)); ok && name != e.Key {
				d.Add(f.Value.Pos, "", "role %s has the name %s", quote(e.Key), quote(name))
			}
			continue
		case "systemPrompt":
			if role.Get("goal") != nil {
				d.Add(f.Pos, "keep only one", `role %s has both "goal" and "systemPrompt"`, quote(e.Key))
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

// titledByID uses the "$id" of a schema as its title, because a store identifies a schema by its hash and
// displays its title.
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

// olderNotices returns one summary of the conversion of an older file.
func (d *draft) olderNotices() []string {
	if !d.older {
		return nil
	}
	notices := []string{d.File() + " uses the older workflow format; to print it in the current one: uwf workflow show " + d.name.text + " --format yaml"}
	if d.assigns {
		notices = append(notices, "ignored defaultAgent and agentOverrides: config.yaml assigns agents; "+
			"uwf config set agentOverrides."+d.name.text+".<role> <agent>")
	}
	return notices
}

// Features of other versions of workflow files are rejected by name, so that authors don't search for a
// mistake of their own.

// refuseTags reports tags other than !include.
func (d *draft) refuseTags(n *yamldoc.Node) {
	switch n.Tag {
	case "", source.Tag: // already reported if it could not be included
	default:
		d.Add(n.Pos, "remove the tag", "unknown tag %s", quote(n.Tag))
	}
	for _, e := range n.Entries {
		d.refuseTags(e.Value)
	}
	for _, item := range n.Items {
		d.refuseTags(item)
	}
}

// refuseTransitionKeys reports keys that belong only to an edge in a transition list.
func (d *draft) refuseTransitionKeys(edge *yamldoc.Node, what string) {
	for _, e := range edge.Entries {
		switch e.Key {
		case "to":
			d.Add(e.Pos, `write "role"`, "%s has \"to\", which is only for lists of transitions", what)
		case "when", "condition":
			d.Add(e.Pos, "make the node a list: - {role: …, when: …}, or use one edge for each $status",
				"%s has a %q, which is only for lists of transitions", what, e.Key)
		}
	}
}
