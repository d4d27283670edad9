package workflow

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// checkTemplates checks the prompt and the location of an edge against the fields available when it is taken.
func (d *draft) checkTemplates(n *nodeDraft, e *edgeDraft) {
	source := d.sourceOf(n, e)
	where := " of " + n.at(e)
	written := e.edge.Prompt
	e.edge.Prompt = d.checkOriginal("prompt"+where, written, e.prompt, source)
	none := e.prompt == nil || e.edge.Prompt == "" && written != ""
	if target := d.roleByName[e.edge.Role]; none && target != nil && target.blank && target.instructed() {
		d.Add(e.pos, "add a prompt to the edge, or a description to the role",
			"%s has no prompt, and role %s has no description", n.at(e), quote(target.name))
	}
	source.fixed = true
	e.edge.Location = d.checkOriginal("location"+where, e.edge.Location, e.location, source)
	d.noteForeign("prompt"+where, e.edge.Prompt, e.prompt)
}

// instructed reports whether the role needs a prompt, because an agent or a person reads it.
func (r *roleDraft) instructed() bool {
	return r.player == protocol.PlayedByAgent || r.player == protocol.PlayedByPerson
}

// answer describes the output that an edge's templates are rendered over.
type answer struct {
	role   *roleDraft // nil at $START, before any answer
	status string     // "" if the role's answers always have the same fields
	fields fields
	listed bool        // the edge is in a list, whose condition can test for fields
	item   bool        // for a child of an "each" role, which has an item
	part   *childDraft // for a command that plays this part
	skip   bool        // its fields are unknown; only the syntax is checked
	node   *nodeDraft  // source of the edge
	edge   *edgeDraft  // nil if unknown
	fixed  bool        // must not depend on the machine
	word   bool        // for a command argument
	empty  *[]string   // collects the tags of missing variables instead of reporting them
}

// sourceOf describes the answer that selects an edge.
func (d *draft) sourceOf(n *nodeDraft, e *edgeDraft) answer {
	a := answer{role: d.roleByName[n.name], node: n, edge: e}
	switch r := a.role; {
	case n.name == protocol.StartNode:
	case r == nil || r.schema == nil:
		a.role, a.skip = nil, true
	case e.failure:
		a.status, a.fields = protocol.ErrorStatus, outputFields(failureSchema())
	case n.list:
		a.fields, a.listed = r.answers.any, true
	case r.answers.byStatus == nil:
		a.fields = r.answers.always
	default:
		f, ok := r.answers.byStatus[e.status]
		a.status, a.fields, a.skip = e.status, f, !ok
	}
	return a
}

// checkTemplate checks the syntax of a template and the names in it.
func (d *draft) checkTemplate(what, template string, n *yamldoc.Node, from answer) {
	if n == nil {
		return
	}
	d.checkLiquid(what, template, n)
	t, err := mustache.Parse(template)
	if syntax, ok := errors.AsType[*mustache.SyntaxError](err); ok {
		remedy := ""
		if from.word && strings.Contains(template, "{{.") {
			remedy = "write run as one text, or start with {{=<% %>=}}"
		} else if strings.Contains(syntax.Message, "has no closing") {
			remedy = "close it, or to keep {{ as text, start with {{=<% %>=}}"
		}
		d.Add(d.InTemplate(n, template, syntax.Line, syntax.Column), remedy, "%s: %s", what, syntax.Message)
		return
	}
	for _, tag := range t.Tags() {
		if d.Full() {
			return
		}
		if from.skip && (tag.Path == nil || tag.Path[0] != protocol.InputsVariable) {
			continue
		}
		if tag.Join != nil {
			d.language = protocol.Language3
		}
		d.checkTag(what, tag, from, func() yamldoc.Pos { return d.InTemplate(n, template, tag.Line, tag.Column) })
	}
}

// checkTag checks one name in a template.
func (d *draft) checkTag(what string, tag mustache.Tag, from answer, at func() yamldoc.Pos) {
	if tag.Path != nil && tag.Path[0] == protocol.InputsVariable {
		d.checkInputTag(what, tag, at)
		return
	}
	if d.isEarlier(tag.Path, from) {
		d.checkEarlierTag(what, tag, from, at)
		return
	}
	if tag.Path == nil || isGlobal(tag.Path[0]) || from.item && tag.Path[0] == moderator.ItemVariable {
		return
	}
	scopes, shown := from.scopes(d, tag.Within)
	if !shown {
		return // inside an omitted section, nothing is missing
	}
	if _, known := find(scopes, tag.Path); known {
		d.noteOwn(what, tag, from, at)
		d.noteOptional(what, tag, from, at)
		return
	}
	names := append(append(scopeNames(scopes, tag.Path), protocol.PromptVariable), d.inputVariables()...)
	if tag.Kind != mustache.Variable {
		// A section over a missing name is a way to test for it, but a near miss of an existing field is
		// probably a typo.
		if nearest := nearest(tag.Name, names); len(tag.Name) > 2 && len(nearest) > 0 {
			d.Add(at(), "did you mean "+quoteList(nearest, " or ")+"?", "%s: %s is over %s, which %s", what, tag.Source,
				quote(tag.Name), from.lacks())
		}
		return
	}
	if from.empty != nil {
		*from.empty = append(*from.empty, tag.Source)
		d.emptyAtStart(what, tag, at)
		return
	}
	d.Add(at(), d.variableRemedy(tag, from, names), "%s: variable %s does not exist: %s", what, quote(tag.Name),
		from.lacks())
}

// variableRemedy suggests the right variable.
func (d *draft) variableRemedy(tag mustache.Tag, from answer, names []string) string {
	if d.Full() {
		return ""
	}
	if tag.Path[0] == moderator.ItemVariable && (from.part == nil || !from.part.each) {
		return "an item exists only in the prompt of a child of \"each\""
	}
	if remedy := filterRemedy(tag.Name); remedy != "" {
		return remedy
	}
	if input := d.inputMeant(tag); input != "" {
		return "did you mean " + quote(input) + "?"
	}
	if from.part != nil {
		return fmt.Sprintf("write prompt: %s in %s, and {{prompt}} here", quote(tag.Source), from.part.desc)
	}
	if from.role != nil && from.status != "" {
		if other := from.statusesWith(tag.Path[0]); len(other) > 0 && !slices.Contains(other, from.status) {
			return quote(tag.Path[0]) + " is a field of the answer " + quoteList(other, ", ") + " only"
		}
	}
	return d.DidYouMean(tag.Name, names, "there is")
}

// lacks describes whose answer lacks a name.
func (a answer) lacks() string {
	switch {
	case a.part != nil:
		return "the thread of a part has only its prompt and the inputs"
	case a.role == nil:
		return "at $START no role has answered yet"
	case a.status != "":
		return "the schema of " + quote(a.role.name) + " has no such field when it answers " + quote(a.status)
	}
	return "the schema of " + quote(a.role.name) + " has no such field"
}

// statusesWith returns the statuses whose answers have a field.
func (a answer) statusesWith(name string) []string {
	schema, _ := a.role.schema.(map[string]any)
	variants, _ := schema["oneOf"].([]any)
	var out []string
	for _, variant := range variants {
		if has(name)(variant) {
			out = append(out, variantStatuses(variant, a.role.statuses.key)...)
		}
	}
	return out
}

// scopes returns the values in which a name is looked up, innermost last. shown is false inside a section
// over a value that never exists.
func (a answer) scopes(d *draft, within []string) (_ []fields, shown bool) {
	scopes := []fields{a.fields}
	for _, section := range within {
		if section == "." {
			scopes = append(scopes, scopes[len(scopes)-1].inSection())
			continue
		}
		path := strings.Split(section, ".")
		if isGlobal(path[0]) {
			continue
		}
		value, known := find(scopes, path)
		if d.isEarlier(path, a) {
			value, known = d.earlierValue(path, a)
		}
		if !known {
			return nil, false
		}
		scopes = append(scopes, value.inSection())
	}
	return scopes, true
}

// find looks up a path from the innermost scope, as the renderer does.
func find(scopes []fields, path []string) (fields, bool) {
	for _, scope := range slices.Backward(scopes) {
		value, known := scope, true
		for i, name := range path {
			if value, known = value.field(name, i > 0); !known {
				break
			}
		}
		if known {
			return value, true
		}
	}
	return fields{}, false
}

// scopeNames returns suggestions for a path: names at the same depth if its beginning exists, otherwise
// top-level names.
func scopeNames(scopes []fields, path []string) []string {
	prefix := path[:len(path)-1]
	if len(prefix) > 0 {
		if value, known := find(scopes, prefix); known {
			names := value.names()
			for i, name := range names {
				names[i] = strings.Join(append(slices.Clone(prefix), name), ".")
			}
			return names
		}
	}
	var names []string
	for _, scope := range scopes {
		names = append(names, scope.names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isGlobal reports whether a name exists in every template: the thread's prompt (under two names), its
// inputs, and the status.
func isGlobal(name string) bool {
	return name == protocol.PromptVariable || name == protocol.InputsVariable || name == "prompt" ||
		name == protocol.StatusKey
}

// maxName is the maximum length of any name, in characters.
const maxName = protocol.MaxName

// checkWorkflowName checks that the name is valid everywhere a workflow name is used.
func (d *draft) checkWorkflowName(name word) {
	problem := protocol.WorkflowNameProblem(name.text)
	switch {
	case problem == "":
		return
	case strings.HasPrefix(problem, "is "):
		problem = "name " + problem
	default:
		problem = "the name " + quote(name.text) + " " + problem
	}
	d.Add(name.pos, protocol.WorkflowNameRule, "%s", problem)
}

// nameProblem describes a problem with the name of a role or a status. Names appear in messages, command
// lines and tables, so they must be one printable line.
func nameProblem(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is blank"
	case utf8.RuneCountInString(name) > maxName:
		return "is longer than 100 characters"
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "has line breaks or other invisible characters"
	case strings.TrimSpace(name) != name:
		return "starts or ends with a space"
	}
	return ""
}

// RoleNameProblem describes a problem with the name of a role, which agents get as an argument; "" if it is
// valid.
func RoleNameProblem(name string) string {
	switch {
	case isReserved(name):
		return "is reserved"
	case strings.HasPrefix(name, "$"):
		return "starts with $, which is reserved"
	case strings.HasPrefix(name, "-"):
		return "starts with -, like a flag"
	case strings.ContainsAny(name, `/\`):
		return "has a slash, like a path"
	}
	return nameProblem(name)
}

func isReserved(name string) bool {
	return slices.Contains([]string{protocol.StartNode, protocol.EndNode, protocol.FailNode, protocol.SuspendNode}, name)
}

// checkStatusKey checks the status of an edge.
func (d *draft) checkStatusKey(e *edgeDraft, what string) {
	if e.status == protocol.SuspendNode {
		d.Add(e.pos, "remove the edge: resuming runs the same role again",
			"%s is unreachable: a role that answers %s suspends the thread", what, protocol.SuspendNode)
		return
	}
	if problem := nameProblem(e.status); problem != "" {
		d.Add(e.pos, "", "the status %s %s", quote(e.status), problem)
	}
}

// checkFileName checks that the workflow's name matches its file, so that the file can be found by name.
func (d *draft) checkFileName(src Source) {
	path := src.Path
	if path == "" {
		path = src.File
	}
	implied := impliedName(path)
	if implied == "" || d.name.text == "" || implied == d.name.text {
		return
	}
	d.Add(d.name.pos, "name: "+implied+", or rename the file",
		"the name is %s, but the file %s needs the name %s", quote(d.name.text), quote(filepath.Base(path)), quote(implied))
}

// impliedName returns the name that a path implies: the file's stem, or the folder's name for index.yaml; ""
// if unknown.
func impliedName(path string) string {
	if path == "" {
		return ""
	}
	stem := Stem(filepath.Base(path))
	if stem != "index" {
		return stem
	}
	folder := filepath.Base(filepath.Dir(path))
	if folder == "." || folder == ".." || folder == string(filepath.Separator) {
		return ""
	}
	return folder
}

// Stem returns the name of a YAML file without its extension.
func Stem(name string) string {
	for _, ending := range []string{".yaml", ".yml"} {
		if stem, ok := strings.CutSuffix(name, ending); ok {
			return stem
		}
	}
	return name
}
