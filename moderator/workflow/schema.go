package workflow

import (
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// checkSchema checks a role's schema against what a store accepts, so that
// nothing is wrong with it only after an agent has worked for it.
func (d *draft) checkSchema(r *roleDraft) {
	if r.schema == nil || r.yaml == nil {
		return
	}
	problems := jsonschema.Check(r.schema)
	for i, p := range problems {
		if d.full() {
			d.more += len(problems) - i
			return
		}
		at, remedy := d.inSchema(r.yaml, p.Path)
		d.add(at, remedy, "the frontmatter of %s: %s", quote(r.name), p)
	}
}

// inSchema is the place of a JSON pointer in a schema, or of the nearest
// thing around it that exists; with a remedy if the cause is plain.
func (d *draft) inSchema(schema *yamldoc.Node, pointer string) (at yamldoc.Pos, remedy string) {
	at, n := schema.Pos, schema
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		next := child(n, part)
		if next.Value == nil {
			break
		}
		if isSplitText(next) {
			remedy = splitRemedy
		}
		at, n = next.Pos, next.Value
	}
	return at, remedy
}

// child is an entry of a mapping, or an item of a list as an entry; its value is
// nil if there is none.
func child(n *yamldoc.Node, name string) yamldoc.Entry {
	if n.Kind == yamldoc.Sequence {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Items) {
			return yamldoc.Entry{Key: name, Pos: n.Items[i].Pos, Value: n.Items[i]}
		}
	}
	for _, e := range n.Entries {
		if e.Key == name {
			return e
		}
	}
	return yamldoc.Entry{}
}
