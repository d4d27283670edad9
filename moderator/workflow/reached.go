package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/internal/reach"
	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// graph returns the workflow's graph, built once.
func (d *draft) graph() *reach.Graph {
	if d.reached != nil {
		return d.reached
	}
	roles := slices.Clone(d.roleNames)
	for _, n := range d.nodes {
		if n.name != protocol.StartNode {
			roles = append(roles, n.name)
		}
	}
	d.reached = reach.New(roles)
	for _, n := range d.nodes {
		for _, e := range n.edges {
			if to, ok := d.head(n, e); ok {
				d.reached.Add(d.tail(n, e), to)
			}
		}
	}
	return d.reached
}

// isReached reports whether a path leads from $START to a node or role.
func (d *draft) isReached(name string) bool {
	in, ok := d.graph().In(name)
	return name == protocol.StartNode || ok && d.graph().Reached(in)
}

// tail returns the point that an edge leaves.
func (d *draft) tail(n *nodeDraft, e *edgeDraft) reach.Point {
	switch in, _ := d.graph().In(n.name); {
	case n.name == protocol.StartNode && e.status == protocol.ResumeStatus && !n.list:
		return reach.End
	case n.name == protocol.StartNode:
		return reach.Start
	case e.failure:
		return in
	}
	return d.graph().Out(n.name)
}

// head returns the point that an edge leads to.
func (d *draft) head(n *nodeDraft, e *edgeDraft) (reach.Point, bool) {
	switch target := e.edge.Role; target {
	case protocol.EndNode, protocol.FailNode:
		return reach.End, true
	case protocol.SuspendNode: // resuming runs the same role
		return d.graph().In(n.name)
	default:
		return d.graph().In(target)
	}
}

// last returns the possible statuses of a node's newest answer when edge e of n is taken.
func (d *draft) last(node, n *nodeDraft, e *edgeDraft) (statuses []string) {
	for _, f := range node.edges {
		head, ok := d.head(node, f)
		if !f.failure && (f == e || ok && d.graph().Avoids(node.name, head, d.tail(n, e))) {
			statuses = append(statuses, f.status)
		}
	}
	return statuses
}

// earlier describes a role's newest answer where an edge is taken.
type earlier struct {
	role              *roleDraft
	possible, certain bool
	statuses          []string // possible statuses; nil means all
	answers           []fields // alternatives
}

// earlierAt describes the newest answer of a role that has a node.
func (d *draft) earlierAt(r *roleDraft, from answer) earlier {
	x := earlier{role: r, possible: true, certain: true, answers: []fields{r.answers.any}}
	if n := len(r.answers.byStatus); n > 0 && n <= maxAlternatives {
		x.answers = slices.Collect(maps.Values(r.answers.byStatus))
	}
	if r.schema == nil {
		x.answers = []fields{{open: true}}
	}
	node := d.nodeByName[r.name]
	if from.edge == nil || node == nil || d.incomplete || d.lostRoles || d.misspeltStart() {
		return x
	}
	at := d.tail(from.node, from.edge)
	if !d.graph().Reached(at) {
		return x // never taken, which is reported elsewhere
	}
	x.possible, x.certain = d.graph().Answered(r.name, at)
	if !x.certain || node.list || r.answers.byStatus == nil || len(node.edges) > maxAlternatives {
		return x
	}
	last := d.last(node, from.node, from.edge)
	unknown := func(status string) bool { _, ok := r.answers.byStatus[status]; return !ok }
	if slices.ContainsFunc(last, unknown) {
		return x
	}
	x.statuses, x.answers = last, nil
	for _, status := range last {
		x.answers = append(x.answers, r.answers.byStatus[status])
	}
	return x
}

// all returns the fields that any of the answers can have.
func (x earlier) all() (all fields) {
	for _, f := range x.answers {
		all.schemas, all.open = append(all.schemas, f.schemas...), all.open || f.open
	}
	if len(all.schemas) > maxAlternatives {
		return fields{open: true}
	}
	return all
}

// lacks reports whether one of the answers can lack a field.
func (x earlier) lacks(name string) bool {
	return slices.ContainsFunc(x.answers, func(f fields) bool {
		_, known := f.field(name, false)
		return !known || f.optional(name)
	})
}

// earlierValue describes the value of a path that begins with $steps or $body; false if it never exists.
func (d *draft) earlierValue(path []string, from answer) (fields, bool) {
	if len(path) == 1 {
		return fields{open: path[0] == protocol.StepsVariable}, true
	}
	r := d.roleByName[path[1]]
	if from.part != nil || r == nil || d.nodeByName[path[1]] == nil {
		return fields{}, false
	}
	x := d.earlierAt(r, from)
	value, known := find([]fields{x.all()}, path[2:])
	return value, known && x.possible
}

func isNew(name string) bool {
	return name == protocol.StepsVariable || name == protocol.BodyVariable || name == protocol.ArtifactsVariable
}

// isEarlier reports whether a template name refers to $steps, $body or $artifacts rather than to a field of
// the answer. If the answer can have any field, only the name of a role decides.
func (d *draft) isEarlier(path []string, from answer) bool {
	if len(path) == 0 || !isNew(path[0]) || slices.Contains(from.fields.names(), path[0]) {
		return false
	}
	return !from.fields.open || path[0] != protocol.StepsVariable || len(path) > 1 && d.roleByName[path[1]] != nil
}

// checkEarlierTag checks a template name that begins with $steps, $body or $artifacts.
func (d *draft) checkEarlierTag(what string, tag mustache.Tag, from answer, at func() yamldoc.Pos) {
	d.language = protocol.Language3
	if _, shown := from.scopes(d, tag.Within); !shown || d.Full() {
		return
	}
	switch tag.Path[0] {
	case protocol.BodyVariable:
		d.checkBody(what, tag, from, at)
		return
	case protocol.ArtifactsVariable:
		if from.fixed && tag.Kind == mustache.Variable {
			d.Add(at(), "use it in run, env or a prompt", "%s: %s depends on the machine", what, tag.Source)
		}
		return
	}
	if tag.Kind != mustache.Variable {
		return // tests whether the value exists
	}
	if len(tag.Path) == 1 {
		d.Add(at(), "{{"+protocol.StepsVariable+".role}}", "%s: %s needs the name of a role", what, tag.Source)
		return
	}
	name := protocol.StepsVariable + "." + tag.Path[1]
	if problem, remedy := d.noEarlier(tag.Path[1], tag.Name, []answer{from}); problem != "" {
		d.Add(at(), cmp.Or(remedy, readLater), "%s: %s %s", what, name, problem)
		return
	}
	x := d.earlierAt(d.roleByName[tag.Path[1]], from)
	if len(tag.Path) > 2 {
		if _, known := find([]fields{x.all()}, tag.Path[2:]); !known {
			d.Add(at(), d.DidYouMean(tag.Name, prefixed(name+".", scopeNames([]fields{x.all()}, tag.Path[2:])), "there is"),
				"%s: variable %s does not exist: %s", what, quote(tag.Name),
				answer{role: x.role, status: only(x.statuses)}.lacks())
			return
		}
		if x.certain && x.lacks(tag.Path[2]) {
			name += "." + tag.Path[2]
			x.certain = false
		}
	}
	if !x.certain && len(tag.Within) == 0 && !from.listed {
		d.noteMissing(what, name, at)
	}
}

func prefixed(prefix string, names []string) []string {
	for i, name := range names {
		names[i] = prefix + name
	}
	return names
}

// only returns the single text of a list, otherwise "".
func only(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return ""
}

const readLater = "read it only where the role has answered"

// noEarlier explains why a role has no answer at some of the places; "" if it can have one.
func (d *draft) noEarlier(role, name string, places []answer) (problem, remedy string) {
	if d.lostRoles || d.lostNodes {
		return "", ""
	}
	if d.roleByName[role] == nil {
		return "is not a role", d.DidYouMean(role, d.roleNames, "the roles are")
	}
	if i := slices.IndexFunc(places, func(a answer) bool { return a.part != nil }); i >= 0 {
		return "has no value here: " + places[i].lacks(),
			fmt.Sprintf("write prompt: %q in %s, and {{prompt}} here", "{{"+name+"}}", places[i].part.desc)
	}
	if d.nodeByName[role] == nil {
		for _, r := range d.roles {
			if slices.ContainsFunc(r.children, func(c childDraft) bool { return c.role.text == role }) {
				read := protocol.StepsVariable + "." + r.name
				if r.role.Join == "" {
					read += ".results"
				}
				return "is only a part", "read " + read
			}
		}
		return "", ""
	}
	possible := func(a answer) bool { return d.earlierAt(d.roleByName[role], a).possible }
	if len(places) > 0 && !slices.ContainsFunc(places, possible) {
		return "never has an answer here", ""
	}
	return "", ""
}

// checkBody checks a use of $body.
func (d *draft) checkBody(what string, tag mustache.Tag, from answer, at func() yamldoc.Pos) {
	variable := tag.Kind == mustache.Variable
	switch {
	case variable && len(tag.Path) > 1 && (len(tag.Path) > 2 || tag.Path[1] != "length"):
		d.Add(at(), "{{"+protocol.BodyVariable+"}}", "%s: %s is a string", what, protocol.BodyVariable)
	case variable && from.role == nil && !from.skip:
		d.Add(at(), "", "%s: variable %s does not exist: %s", what, quote(tag.Name), from.lacks())
	case from.role != nil && (from.role.role.Player() != protocol.PlayedByAgent || from.edge != nil && from.edge.failure):
		d.Note(at, "%s: %s is always empty: no agent answers as %s", what, protocol.BodyVariable, quote(from.role.name))
	}
}

// noteOwn warns that a name refers to a field of the answer and shadows a variable.
func (d *draft) noteOwn(what string, tag mustache.Tag, from answer, at func() yamldoc.Pos) {
	if name := tag.Path[0]; from.role != nil && isNew(name) {
		d.Note(at, "%s: %s is a field of the answer of %s here, not uwf's variable", what, name, quote(from.role.name))
	}
}

// checkEarlierPaths checks which parts of $steps and $body an expression reads at the places where it is
// evaluated; without places it checks only the names.
func (d *draft) checkEarlierPaths(what, text string, n *yamldoc.Node, reads jsonata.Reads,
	places func() []answer) {
	for _, p := range reads.Bound {
		at := func() yamldoc.Pos { return d.InExpression(n, text, p.Pos.Offset) }
		switch "$" + p.Names[0] {
		case protocol.BodyVariable:
			d.language = protocol.Language3
		case protocol.StepsVariable:
			d.language = protocol.Language3
			if len(p.Names) > 1 {
				d.checkEarlierPath(what, text[p.Pos.Offset:], p, places(), at)
			}
		}
	}
}

func (d *draft) checkEarlierPath(what, text string, p jsonata.Path, places []answer, at func() yamldoc.Pos) {
	role := p.Names[1]
	p.Names = append([]string{protocol.StepsVariable}, p.Names[1:]...)
	for _, r := range d.roleNames {
		if len(r) > len(role) && strings.HasPrefix(text, protocol.StepsVariable+"."+r) {
			d.Add(at(), protocol.StepsVariable+".`"+r+"`", "%s: %s.%s needs backquotes", what, protocol.StepsVariable, r)
			return
		}
	}
	if problem, remedy := d.noEarlier(role, strings.Join(p.Names, "."), places); problem != "" {
		if !p.Tested || remedy != "" {
			d.Add(at(), cmp.Or(remedy, readLater), "%s: %s.%s %s", what, protocol.StepsVariable, role, problem)
		}
		return
	}
	r := d.roleByName[role]
	if len(p.Names) < 3 || r == nil {
		return
	}
	var all earlier
	if len(places) == 0 || len(places) > maxAlternatives {
		places = []answer{{}}
	}
	for _, place := range places {
		all.answers = append(all.answers, d.earlierAt(r, place).answers...)
	}
	d.checkField(what, p, 2, role, all.all(), at)
}

// placesBefore returns the edges that lead to a role.
func (d *draft) placesBefore(role string) func() []answer {
	return d.places(func(n *nodeDraft, e *edgeDraft) bool { return e.edge.Role == role })
}

// usesOf returns the edges that use a named condition.
func (d *draft) usesOf(condition string) func() []answer {
	return d.places(func(n *nodeDraft, e *edgeDraft) bool { return e.when == condition })
}

func (d *draft) places(fit func(*nodeDraft, *edgeDraft) bool) func() []answer {
	return func() (places []answer) {
		for _, n := range d.nodes {
			for _, e := range n.edges {
				if fit(n, e) {
					places = append(places, d.sourceOf(n, e))
				}
			}
		}
		return places
	}
}

// checkVarsWithin checks $steps and $body in texts inside lists and mappings of "vars".
func (d *draft) checkVarsWithin(what string, n *yamldoc.Node, from answer) {
	for _, item := range n.Items {
		d.checkVarsWithin(what, item, from)
	}
	for _, e := range n.Entries {
		d.checkVarsWithin(what+"."+e.Key, e.Value, from)
	}
	text, ok := n.Scalar.(string)
	t, err := mustache.Parse(text)
	if n.Kind != yamldoc.Scalar || !ok || err != nil {
		return
	}
	for _, tag := range t.Tags() {
		if d.isEarlier(tag.Path, from) {
			d.checkEarlierTag(what, tag, from, func() yamldoc.Pos { return d.InTemplate(n, text, tag.Line, tag.Column) })
		}
	}
}
