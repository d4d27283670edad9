package workflow

import (
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/moderator/workflow/internal/source"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Problems lists all problems of a file, in file order.
type Problems = source.Problems

type report = source.Report

func nearest(word string, candidates []string) []string { return source.Nearest(word, candidates) }

func quote(name string) string { return source.Quote(name) }

func quoteList(names []string, separator string) string { return source.QuoteList(names, separator) }

func kindOf(n *yamldoc.Node) string { return source.KindOf(n) }

func isNull(n *yamldoc.Node) bool { return source.IsNull(n) }

func isUnread(n *yamldoc.Node) bool { return source.IsUnread(n) }

func unread(n *yamldoc.Node) *yamldoc.Node { return source.Unread(n) }

// once reports whether a notice is issued for the first time.
func (d *draft) once(what string) bool {
	first := !d.reported[what]
	if d.reported == nil {
		d.reported = map[string]bool{}
	}
	d.reported[what] = true
	return first
}

// noteOptional warns about a variable that no schema requires: an answer without it stops the run at this
// edge. It isn't an error, because the agent can always provide it. There is no warning inside a section, or
// if a list's condition can test for the field.
func (d *draft) noteOptional(what string, tag mustache.Tag, from answer, at func() yamldoc.Pos) {
	name := tag.Path[0]
	if tag.Kind != mustache.Variable || len(tag.Within) > 0 || from.listed || !from.fields.optional(name) {
		return
	}
	if from.role != nil && !d.once("optional "+from.role.name+" "+name) {
		return
	}
	d.Note(at, "%s: %s may be missing, which stops the run here; require it, or put {{#%s}}…{{/%s}} around it",
		what, quote(name), name, name)
}

// noteMissing warns about a $steps variable whose role or field can be missing.
func (d *draft) noteMissing(what, name string, at func() yamldoc.Pos) {
	d.Note(at, "%s: %s may be missing here, which stops the run; put {{#%s}}…{{/%s}} around it", what, quote(name),
		name, name)
}

// noteFree warns about a role that can answer any status, so that its edges can't be checked. The edge "_"
// takes all other statuses.
func (d *draft) noteFree(r *roleDraft, n *nodeDraft) {
	named := without(n.keys(), []string{protocol.DefaultStatus})
	at := func() yamldoc.Pos { return n.pos }
	if len(named) < len(n.keys()) {
		d.Note(at, "the schema of %s allows any %s; all except %s take the edge %q; use an enum to list them",
			quote(r.name), r.statuses.key, quoteList(named, ", "), protocol.DefaultStatus)
		return
	}
	d.Note(at, "the schema of %s allows any %s, and all except %s stop the run here; use enum: [%s], or add an "+
		"edge %q for the others",
		quote(r.name), r.statuses.key, quoteList(named, ", "), strings.Join(named, ", "), protocol.DefaultStatus)
}

// noteOutside warns about a location outside the thread's starting directory, which most users' config
// doesn't allow.
func (d *draft) noteOutside(what, location string, at yamldoc.Pos) {
	slash := strings.ReplaceAll(location, `\`, "/")
	why := ""
	switch {
	case strings.HasPrefix(slash, "/"), len(slash) > 2 && slash[1] == ':' && slash[2] == '/':
		why = "is absolute"
	case slash == "~", strings.HasPrefix(slash, "~/"):
		why = "starts with a directory named ~"
	case path.Clean(slash) == "..", strings.HasPrefix(path.Clean(slash), "../"):
		why = "is outside the thread's directory"
	default:
		return
	}
	d.Note(func() yamldoc.Pos { return at }, "location of %s %s; it must be inside the thread's directory, in a "+
		"linked git work tree of its repository, or in allowLocations of config.yaml",
		what, why)
}

// optional reports whether a schema declares a field without requiring it or giving it a default.
func (f fields) optional(name string) bool {
	named := false
	for _, s := range f.schemas {
		if required, _ := s["required"].([]any); slices.Contains(required, any(name)) {
			return false
		}
		properties, _ := s["properties"].(map[string]any)
		property, has := properties[name]
		if object, _ := property.(map[string]any); object["default"] != nil {
			return false
		}
		named = named || has
	}
	return named
}
