package workflow

import "github.com/united-workforce/uwf/util/yamldoc"

// What other versions of workflow files have and this one does not is refused
// by name, so that nobody looks for a mistake of their own.

// refuseTags reports tags other than !include.
func (d *draft) refuseTags(n *yamldoc.Node) {
	switch n.Tag {
	case "", includeTag: // what could not be included is reported already
	default:
		d.add(n.Pos, "leave the tag out", "the tag %s means nothing in a workflow", quote(n.Tag))
	}
	for _, e := range n.Entries {
		d.refuseTags(e.Value)
	}
	for _, item := range n.Items {
		d.refuseTags(item)
	}
}

// refuseTransitionKeys reports keys that only an edge in a transition list has.
func (d *draft) refuseTransitionKeys(edge *yamldoc.Node, what string) {
	for _, e := range edge.Entries {
		switch e.Key {
		case "to":
			d.add(e.Pos, `write "role"`, "%s has \"to\", which belongs to lists of transitions", what)
		case "when", "condition":
			d.add(e.Pos, "make the node a list: - {role: …, when: …}, or let the role answer a $status and name the edge after it",
				"%s has a %q, which belongs to lists of transitions", what, e.Key)
		}
	}
}
