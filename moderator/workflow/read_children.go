package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Used is a workflow that a role runs.
type Used struct {
	Hash       protocol.Hash
	Definition Definition
}

// childDraft is a part of a role, played by a child thread.
type childDraft struct {
	desc         string // description for messages
	pos          yamldoc.Pos
	role         word // of the same workflow; "" for a workflow
	used         *Used
	prompt, vars *yamldoc.Node
	text         string // of the prompt
	when         *yamldoc.Node
	condition    string // of when
	each         bool   // an item is available
}

// onePlayer reports a role with more than one player.
func (d *draft) onePlayer(m map[string]*yamldoc.Node, what string) {
	first := ""
	for _, key := range []string{"run", "person", "workflow", "all", "each", "compute"} {
		switch n := m[key]; {
		case n == nil:
		case first != "":
			d.Add(n.Pos, "keep only one", "%s has both %q and %q; only one is allowed", what, first, key)
		default:
			first = key
		}
	}
}

// readChildren reads the threads that play a role.
func (d *draft) readChildren(r *roleDraft, m map[string]*yamldoc.Node, what string, player protocol.Player) {
	d.readWorkspace(r, m, what)
	r.role.Parallel = int(d.limit(m["parallel"], "parallel of "+what, moderator.MaxChildren))
	r.role.Join, _ = d.text(m["join"], "join of "+what)
	r.join = m["join"]
	switch player {
	case protocol.PlayedByWorkflow:
		c := childDraft{desc: what, pos: m["workflow"].Pos, vars: m["vars"]}
		c.used = d.use(m["workflow"], "workflow of "+what)
		r.role.Inputs = d.readVars(m["vars"], "vars of "+what)
		if c.used != nil {
			r.role.Workflow = c.used.Hash
		} else {
			r.role.Workflow = unknownWorkflow
		}
		r.children = []childDraft{c}
	case protocol.PlayedByAll:
		d.readAll(r, m["all"], what)
		d.readOnFailure(r, m["onFailure"], what)
	default:
		d.readEach(r, m["each"], what)
		d.readOnFailure(r, m["onFailure"], what)
	}
}

// readWorkspace reads where a role's children work and how their changes are merged.
func (d *draft) readWorkspace(r *roleDraft, m map[string]*yamldoc.Node, what string) {
	n := m["workspace"]
	if text, ok := d.text(n, "workspace of "+what); ok && text != protocol.InWorktree {
		d.Add(n.Pos, "write workspace: worktree, or remove it: children work in the directory of their parent",
			"workspace of %s cannot be %s", what, quote(text))
	} else if ok {
		r.role.Workspace = text
	}
	n = m["merge"]
	if r.role.Merge = d.yes(n, "merge", what); r.role.Merge && r.role.Workspace == "" {
		d.Add(n.Pos, "add workspace: worktree", "%s has \"merge\", but its children have no worktrees", what)
	}
}

// checkMerge checks that a role's schema allows the answer that its children's files can't be merged.
func (d *draft) checkMerge(r *roleDraft) {
	if !r.role.Merge || r.yaml == nil || d.Full() {
		return
	}
	compiled, err := jsonschema.Compile(r.schema)
	if err != nil {
		return // reported with the schema
	}
	problems, err := compiled.Validate(context.Background(), moderator.Conflicted([]string{"path"}))
	if err == nil && len(problems) > 0 {
		d.Add(r.yaml.Pos, "use oneOf with a variant for it, or remove schema and join",
			"merge of %s answers {$status: conflict, files: [path, …]} on a conflict, which its schema does not "+
				"allow: %s", quote(r.name), problems[0])
	}
}

// unknownWorkflow stands for an unreadable workflow. It is never stored.
const unknownWorkflow = protocol.Hash("0000000000000")

// exampleAll is a typical role with parts.
const exampleAll = "all: [one, other], or all: {first: {role: …}, second: {workflow: ./other.yaml}}"

func (d *draft) readAll(r *roleDraft, n *yamldoc.Node, what string) {
	r.role.All = map[string]protocol.ChildRole{}
	if isUnread(n) {
		return
	}
	if n.Kind != yamldoc.Mapping || len(n.Entries) == 0 {
		d.Add(n.Pos, exampleAll, "all of %s must be a list of roles, or a mapping from name to role or workflow, "+
			"not %s",
			what, kindOf(n))
		return
	}
	for _, e := range n.Entries {
		what := fmt.Sprintf("all[%s] of %s", e.Key, what)
		if problem := RoleNameProblem(e.Key); problem != "" {
			d.Add(e.Pos, "", "the name %s in %s %s", quote(e.Key), what, problem)
		}
		c, role := d.readChild(e.Value, e.Pos, what, []field{{key: "when"}})
		d.readWhen(&c, &role, e.Value.Get("when"))
		r.children = append(r.children, c)
		r.role.All[e.Key] = role
	}
}

func (d *draft) readEach(r *roleDraft, n *yamldoc.Node, what string) {
	r.role.Each = &protocol.EachRole{}
	if isUnread(n) {
		return
	}
	what = "each of " + what
	c, role := d.readChild(n, n.Pos, what, []field{{key: "of", required: true,
		remedy: "the list, in JSONata, such as meta.findings"}, {key: "max"}})
	c.each = true
	r.children = []childDraft{c}
	r.role.Each.ChildRole = role
	if n.Kind == yamldoc.Mapping {
		r.of = n.Get("of")
		if r.of != nil {
			r.role.Each.Of, _ = d.text(r.of, "of of "+what)
		}
		if most := n.Get("max"); most != nil {
			r.role.Each.Max = int(d.limit(most, "max of "+what, moderator.MaxChildren))
		}
	}
}

// readChild reads one part: a role or a workflow, with its prompt and inputs.
func (d *draft) readChild(n *yamldoc.Node, at yamldoc.Pos, what string, more []field) (childDraft, protocol.ChildRole) {
	c, role := childDraft{desc: what, pos: at}, protocol.ChildRole{}
	if isUnread(n) {
		return c, role
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, "{role: …, prompt: …}, or {workflow: ./other.yaml}", "%s must be a mapping, not %s", what,
			kindOf(n))
		return c, role
	}
	m := d.mapping(n, at, what, slices.Concat([]field{{key: "role"}, {key: "workflow"}, {key: "prompt"}, {key: "vars"}},
		more))
	switch {
	case m["role"] != nil && m["workflow"] != nil:
		d.Add(m["workflow"].Pos, "keep only one", "%s has both \"role\" and \"workflow\"", what)
	case m["role"] == nil && m["workflow"] == nil:
		d.Add(at, "add role: or workflow:", "%s has neither a role nor a workflow", what)
	case m["role"] != nil:
		name, _ := d.text(m["role"], "role of "+what)
		c.role, role.Role = word{name, m["role"].Pos}, name
		if m["vars"] != nil {
			d.Add(m["vars"].Pos, "remove it: a role gets the inputs of its workflow",
				"%s has \"vars\", but runs no other workflow", what)
		}
	default:
		if c.used = d.use(m["workflow"], "workflow of "+what); c.used != nil {
			role.Workflow = c.used.Hash
		}
		c.vars = m["vars"]
		role.Inputs = d.readVars(m["vars"], "vars of "+what)
	}
	text, ok := d.text(m["prompt"], "prompt of "+what)
	if ok && strings.TrimSpace(text) == "" {
		d.Add(m["prompt"].Pos, "remove it to use the edge's prompt", "prompt of %s is blank", what)
	} else if ok {
		c.prompt, c.text, role.Prompt = m["prompt"], text, text
	}
	return c, role
}

// use resolves the name of a workflow.
func (d *draft) use(n *yamldoc.Node, what string) *Used {
	name, ok := d.text(n, what)
	if !ok {
		return nil
	}
	if d.workflow == nil {
		d.Add(n.Pos, "", "%s: %s not found", what, quote(name))
		return nil
	}
	used, err := d.workflow(name)
	var inside *Problems
	switch {
	case errors.As(err, &inside) && len(inside.List) > 0:
		p := inside.List[0]
		d.Add(n.Pos, "uwf workflow validate "+name, "%s: %s:%d:%d: %s", what, p.File, p.Line, p.Column, p.Message)
		return nil
	case err != nil:
		d.Add(n.Pos, "", "%s: %v", what, err)
		return nil
	}
	if !slices.ContainsFunc(d.uses, func(u Used) bool { return u.Hash == used.Hash }) {
		d.uses = append(d.uses, used)
	}
	return &used
}

// readVars reads the inputs of a child.
func (d *draft) readVars(n *yamldoc.Node, what string) map[string]any {
	if n == nil || isUnread(n) {
		return nil
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, "vars: {branch: \"{{branch}}\"}", "%s must be a mapping from input to value, not %s", what,
			kindOf(n))
		return nil
	}
	vars, _ := n.Value().(map[string]any)
	return vars
}

// checkChildren checks that the parts of roles exist, their inputs, and their expressions.
func (d *draft) checkChildren() {
	for _, r := range d.roles {
		for _, c := range r.children {
			d.checkChild(r, c)
			d.checkPart(c)
			d.noteForeign("prompt of "+c.desc, c.text, c.prompt)
			if c.when != nil {
				d.checkExpression("when of "+c.desc, c.condition, c.when, nil, d.placesBefore(r.name))
			}
		}
		if r.of != nil && r.role.Each.Of != "" {
			d.checkExpression("each.of of role "+quote(r.name), r.role.Each.Of, r.of, nil, d.placesBefore(r.name))
		}
		if r.join != nil && r.role.Join != "" {
			d.checkJoin(r, "join", r.role.Join)
		}
		if r.join != nil && r.role.Compute != "" {
			d.checkJoin(r, "compute", r.role.Compute)
		}
	}
}

func (d *draft) checkChild(r *roleDraft, c childDraft) {
	if c.role.text != "" {
		target := d.roleByName[c.role.text]
		switch {
		case target == nil && !d.lostRoles && strings.ContainsAny(c.role.text, "./"):
			d.Add(c.role.pos, "{workflow: "+c.role.text+"}", "%s refers to unknown role %s", c.desc,
				quote(c.role.text))
		case target == nil && !d.lostRoles:
			d.Add(c.role.pos, d.DidYouMean(c.role.text, d.roleNames, "the roles are"),
				"%s refers to unknown role %s", c.desc, quote(c.role.text))
		case target != nil && target.role.HasChildren():
			d.Add(c.role.pos, "move it to a workflow, and use that", "%s refers to role %s, which has children "+
				"itself",
				c.desc, quote(c.role.text))
		}
		return
	}
	if c.used == nil {
		return
	}
	given := map[string]bool{}
	if c.vars != nil {
		for _, e := range c.vars.Entries {
			given[e.Key] = true
			if _, known := c.used.Definition.Inputs[e.Key]; !known {
				d.Add(e.Pos, d.DidYouMean(e.Key, c.used.Definition.inputNames(), "its inputs are"),
					"%s: workflow %s has no input %s", c.desc, quote(c.used.Definition.Name), quote(e.Key))
			}
		}
	}
	for _, name := range c.used.Definition.inputNames() {
		if c.used.Definition.Inputs[name].Default == nil && !given[name] {
			d.Add(c.pos, "vars: {"+name+": …}", "%s: workflow %s needs the input %s", c.desc, quote(c.used.Definition.Name),
				quote(name))
		}
	}
}

// played returns the roles that are played only as part of another one.
func (d *draft) played() map[string]bool {
	names := map[string]bool{}
	for _, r := range d.roles {
		for _, c := range r.children {
			names[c.role.text] = true
		}
	}
	return names
}

// checkChildTemplates checks the templates of children against the answer on an edge to their role.
func (d *draft) checkChildTemplates(n *nodeDraft, e *edgeDraft) {
	target := d.roleByName[e.edge.Role]
	if target == nil {
		return
	}
	if source := d.roleByName[n.name]; source != nil && target.of != nil && target.role.Each.Of != "" {
		what := "each.of of role " + quote(target.name) + ", by " + n.at(e)
		if expr, err := jsonata.Parse(target.role.Each.Of); err == nil { // otherwise reported once, see checkChildren
			d.checkPaths(what, target.role.Each.Of, target.of, expr.Reads().Paths, source)
		}
	}
	for _, c := range target.children {
		source := d.sourceOf(n, e)
		source.item = c.each
		d.checkTemplate("prompt of "+c.desc+", by "+n.at(e), c.text, c.prompt, source)
		if c.vars == nil {
			continue
		}
		source.fixed = true
		for _, v := range c.vars.Entries {
			if text, ok := v.Value.Scalar.(string); ok && v.Value.Kind == yamldoc.Scalar {
				d.checkTemplate("vars."+v.Key+" of "+c.desc+", by "+n.at(e), text, v.Value, source)
			} else {
				d.checkVarsWithin("vars."+v.Key+" of "+c.desc+", by "+n.at(e), v.Value, source)
			}
		}
	}
}

// resultFields lists the fields of a result in a join.
func resultFields() []string { return []string{"key", "item", "status", "output", "error", "files"} }

// checkJoin checks a role's join or compute expression.
func (d *draft) checkJoin(r *roleDraft, field, expression string) {
	what := field + " of role " + quote(r.name)
	expr, err := jsonata.Parse(expression)
	if syntax, ok := errors.AsType[*jsonata.Error](err); ok {
		d.Add(d.InExpression(r.join, expression, syntax.Pos.Offset), syntax.Hint, "%s: %s", what, syntax.Message)
		return
	}
	known := moderator.ContextFields()
	if field == "join" {
		known = append(known, "results")
	}
	answers := d.answersOfChildren(r)
	d.checkEarlierPaths(what, expression, r.join, expr.Reads(), d.placesBefore(r.name))
	for _, p := range expr.Reads().Paths {
		at := func() yamldoc.Pos { return d.InExpression(r.join, expression, p.Pos.Offset) }
		switch {
		case !slices.Contains(known, p.Names[0]):
			d.Add(at(), d.DidYouMean(p.Names[0], known, "the context has"), "%s: %s never has a value", what,
				quote(strings.Join(p.Names, ".")))
		case p.Names[0] != "results" || len(p.Names) < 2:
		case !slices.Contains(resultFields(), p.Names[1]):
			d.Add(at(), d.DidYouMean(p.Names[1], resultFields(), "a result has"), "%s: %s never has a value", what,
				quote(strings.Join(p.Names, ".")))
		case p.Names[1] == "output" && len(p.Names) > 2:
			if _, has := answers.field(p.Names[2], false); !has {
				d.Add(at(), d.DidYouMean(p.Names[2], answers.names(), "the children answer"), "%s: no child has %s", what,
					quote(p.Names[2]))
			}
		}
	}
	d.checkLists(r, what, expr)
}

// answersOfChildren describes the answers of a role's children.
func (d *draft) answersOfChildren(r *roleDraft) fields {
	var all fields
	for _, c := range r.children {
		switch role := d.roleByName[c.role.text]; {
		case role != nil && role.schema != nil:
			all.schemas = append(all.schemas, role.answers.any.schemas...)
			all.open = all.open || role.answers.any.open
		case c.used != nil:
			for _, schema := range c.used.Definition.lastSchemas() {
				f := outputFields(schema)
				all.schemas, all.open = append(all.schemas, f.schemas...), all.open || f.open
			}
		default:
			all.open = true
		}
	}
	if len(all.schemas) > maxAlternatives {
		return fields{open: true}
	}
	return all
}

// lastSchemas returns the schemas of the roles that can be a workflow's last.
func (d Definition) lastSchemas() []any {
	var all []any
	for name := range d.Graph {
		if slices.ContainsFunc(flow.Ways(d.Workflow, name), func(w flow.Way) bool {
			return w.Role == protocol.EndNode || w.Role == protocol.FailNode
		}) {
			all = append(all, d.Schemas[name])
		}
	}
	return all
}
