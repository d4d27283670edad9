package workflow

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/yamldoc"
)

// The original's files begin with "version: 1" and keep YAML anchors under keys "x-…". Neither is
// stored, so a workflow has the same hash with and without them.

// withoutVersion checks the version of a file, and returns the file without it and the keys "x-…".
func (d *draft) withoutVersion(root *yamldoc.Node) *yamldoc.Node {
	shown := *root
	shown.Entries = slices.DeleteFunc(slices.Clone(root.Entries), func(e yamldoc.Entry) bool {
		if e.Key != "version" {
			return strings.HasPrefix(e.Key, "x-")
		}
		if d.versioned = e.Value.Scalar == int64(1); !d.versioned {
			d.add(e.Value.Pos, "version: 1", "version %s of the file format is not known", quote(e.Value.Text))
		}
		return true
	})
	return &shown
}

// checkLiquid refuses a tag of Liquid, the original's language for templates, in a file of the original's.
// In any other file it may be meant as text, and is noted.
func (d *draft) checkLiquid(what, template string, n *yamldoc.Node) {
	const open = "{%"
	at := strings.Index(template, open)
	if at < 0 {
		return
	}
	tag, _, _ := strings.Cut(template[at+len(open):], "%}")
	words := strings.Fields(strings.Trim(tag, "- \t\n"))
	if len(words) == 0 {
		return
	}
	name, about := words[0], "name"
	if len(words) > 1 {
		about = words[1]
	}
	if name == "for" { // item in items
		about = words[len(words)-1]
	}
	remedy, known := map[string]string{
		"if":      "write {{#" + about + "}}…{{/" + about + "}}, and {{^" + about + "}}…{{/" + about + "}} for what is otherwise",
		"unless":  "write {{^" + about + "}}…{{/" + about + "}}",
		"for":     "write {{#" + about + "}}…{{.}}…{{/" + about + "}}",
		"comment": "write {{! … }}",
		"raw":     "write {{=<% %>=}} before it and <%={{ }}=%> behind it",
	}[name]
	place := func() yamldoc.Pos { return d.nth(n.Pos, open, 0) }
	switch {
	case d.versioned && !known:
		d.add(place(), "prepare the value in a role, and write {{field}}", "%s: the tag {%% %s %%} of Liquid does not exist", what, name)
	case d.versioned:
		d.add(place(), remedy, "%s: the tag {%% %s %%} of Liquid does not exist", what, name)
	case known:
		d.note(place, "%s: {%% %s %%} is no tag here, and stays in the text; for the same, %s", what, name, remedy)
	}
}
