package workflow

import (
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// noteOptional tells the author of a variable that exists, but that no schema
// requires: an answer without it stops the run at this edge. It is no problem,
// since the agent may always give it. Inside a section the author has thought of
// it, and the condition of a list may ask for it.
func (d *draft) noteOptional(what string, tag mustache.Tag, from answer, at func() yamldoc.Pos) {
	name := tag.Path[0]
	if tag.Kind != mustache.Variable || len(tag.Within) > 0 || from.listed || !from.fields.optional(name) {
		return
	}
	const most = 10
	if len(d.notices) == most {
		return
	}
	pos := at()
	file, line := d.where(pos.Line)
	d.notices = append(d.notices, fmt.Sprintf(
		"%s:%d:%d: %s: %s may be missing, and then the run stops here; name it under required, or write {{#%s}}…{{/%s}} around it",
		file, line, pos.Column, what, quote(name), name, name))
}

// optional reports whether a field is named by a schema, and required by none.
func (f fields) optional(name string) bool {
	named := false
	for _, s := range f.schemas {
		if required, _ := s["required"].([]any); slices.Contains(required, any(name)) {
			return false
		}
		properties, _ := s["properties"].(map[string]any)
		_, has := properties[name]
		named = named || has
	}
	return named
}
