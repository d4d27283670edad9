package workflow

import "github.com/united-workforce/uwf/util/yamldoc"

// What other versions of workflow files have and this one does not is refused
// by name, so that nobody looks for a mistake of their own.

// refuseTags reports tags such as !include.
func (d *draft) refuseTags(n *yamldoc.Node) {
	switch n.Tag {
	case "":
	case includeTag:
		if !d.hasDir { // else the reason is told already
			d.add(n.Pos, "write the text here, as a block (|)", "!include works only in a file, and this text is none")
		}
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

// refuseOlderForm reports the keys of the older form. The rest of such a file
// would only be a list of misunderstandings.
func (d *draft) refuseOlderForm(root *yamldoc.Node) bool {
	if root.Get("moderator") == nil {
		return false
	}
	for _, e := range root.Entries {
		switch e.Key {
		case "moderator":
			d.add(e.Pos, "write graph: with a map of edges for each role, and goal, procedure and output for each role",
				`the older form of workflows ("moderator", "systemPrompt", lists of "from" and "transitions") is not supported by this version of uwf`)
		case "defaultAgent", "agentOverrides":
			d.add(e.Pos, "write it into config.yaml", "%q does not belong into a workflow: who plays a role is configuration", e.Key)
		}
	}
	return true
}

// refuseConditions reports the conditions of transition lists.
func (d *draft) refuseConditions(root *yamldoc.Node) {
	for _, e := range root.Entries {
		if e.Key == "conditions" {
			d.add(e.Pos, "let the role answer a $status and route by it", "conditions are not supported by this version of uwf")
		}
	}
}

// refuseTransitionKeys reports keys that only an edge in a transition list has.
func (d *draft) refuseTransitionKeys(edge *yamldoc.Node, what string) {
	for _, e := range edge.Entries {
		switch e.Key {
		case "to":
			d.add(e.Pos, `write "role"`, "%s has \"to\", which belongs to lists of transitions", what)
		case "condition":
			d.add(e.Pos, "let the role answer a $status and name the edge after it",
				"%s has a condition, which belongs to lists of transitions and is not supported by this version of uwf", what)
		}
	}
}
