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
	name, rest, _ := strings.Cut(strings.Trim(tag, "- \t\n"), " ")
	remedy, known := map[string]string{
		"if":      "write {{#x}}…{{/x}}, and {{^x}}…{{/x}} for what is otherwise",
		"unless":  "write {{^x}}…{{/x}}",
		"for":     "write {{#x}}…{{.}}…{{/x}}",
		"comment": "write {{! … }}",
		"raw":     "write {{=<% %>=}} before it and <%={{ }}=%> behind it",
		"assign":  "prepare the value in a role, and write {{x}}",
	}[name]
	if about := strings.Fields(rest); len(about) > 0 {
		x := about[0]
		if name == "for" { // item in items
			x = about[len(about)-1]
		}
		remedy = strings.ReplaceAll(remedy, "x}}", x+"}}")
	}
	place := func() yamldoc.Pos { return d.nth(n.Pos, open, 0) }
	if d.versioned {
		d.add(place(), remedy, "%s: the tag {%% %s %%} of Liquid does not exist", what, name)
	} else if known {
		d.note(place, "%s: {%% %s %%} is no tag here, and stays in the text; for the same, %s", what, name, remedy)
	}
}
