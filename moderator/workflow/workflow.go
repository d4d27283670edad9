// Package workflow reads workflow files: YAML in, a definition or a list of
// problems out, each with its place and its remedy. It touches no store.
//
// Reading has two parts. First the text is read into a draft that knows the
// place of everything (read*.go), with the files that it includes in their
// places (package source), and the older form and short forms turned into
// the present one (older.go, short.go); what has the wrong shape is reported there. Then the
// checks go over the draft: the graph (read_graph.go), whether each role's
// edges are the statuses that its schema allows (status.go), the conditions of
// lists (condition.go), the schemas themselves, and the templates,
// against the fields that a role delivers (template.go, fields.go). Every problem is collected, so that an
// author sees all of them at once.
package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/united-workforce/uwf/moderator/workflow/internal/source"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Definition is a workflow as its author wrote it: roles hold their schemas,
// not hashes.
type Definition struct {
	protocol.Workflow                // Roles[*].Frontmatter and Inputs[*].Schema are empty
	Schemas           map[string]any // role → JSON Schema of its output, as a JSON value
	InputSchemas      map[string]any // input → JSON Schema of its value; nil: there are no inputs
	Uses              []Used         // that roles run; they are to be stored with it
	// Notices are what the author should know although nothing is wrong.
	Notices []string
}

// Source is a file to read.
type Source struct {
	File string // as messages shall name it
	// Path tells which name the workflow must have: that of the file, or of the
	// folder for index.yaml. "" is File; if that is "", too, any name will do.
	Path string
	// Dir is the directory that "!include" may read from; nil refuses the tag.
	Dir *os.Root
	// Node reads the payload of a stored node, for what refers to a role or a
	// schema by its hash; nil refuses such references.
	Node func(protocol.Hash) (payload any, err error)
	// Workflow finds the workflow that a role runs, by a path or a name as it is written;
	// nil refuses such roles.
	Workflow func(name string) (Used, error)
	Data     []byte
}

// Parse reads and checks a file. It returns the definition or *[Problems].
func Parse(src Source) (Definition, error) {
	r := source.NewReport(cmp.Or(src.File, "workflow"), src.Data)
	if isDot(src.Data) {
		r.Add(yamldoc.Pos{Line: 1, Column: 1}, comingFrom, "this is a workflow of Fabro")
		return Definition{}, r.Problems()
	}
	doc, err := yamldoc.Parse(src.Data, yamldoc.Bounds{})
	if err != nil {
		r.AddYAML(err, 0)
		return Definition{}, r.Problems()
	}
	d := readDraft(r, source.Include(r, doc.Root, source.From{Dir: src.Dir, File: src.File, Path: src.Path, Node: src.Node, Schemas: schemaKeys()}), src)
	if d != nil {
		d.check(src)
	}
	if problems := r.Problems(); problems != nil {
		return Definition{}, problems
	}
	return d.definition(), nil
}

// check looks for everything that is wrong although it has the right shape.
func (d *draft) check(src Source) {
	d.checkFileName(src)
	d.checkRoles()
	d.addFailed()
	d.markFailures()
	d.checkGraph()
	d.checkReach()
	d.checkConditions()
	d.checkInputs()
	d.checkChildren()
	for _, r := range d.roles {
		d.checkSchema(r)
		d.checkMerge(r)
		d.checkStatuses(r)
	}
	nodes := d.nodes
	if start := d.nodeByName[protocol.StartNode]; start != nil { // its notes count most, and there are only so many
		nodes = append([]*nodeDraft{start}, slices.DeleteFunc(slices.Clone(nodes), func(n *nodeDraft) bool { return n == start })...)
	}
	for _, n := range nodes {
		for _, e := range n.edges {
			d.checkTemplates(n, e)
			d.checkCommand(n, e)
			d.checkChildTemplates(n, e)
		}
	}
}

// definition is the draft without its places.
func (d *draft) definition() Definition {
	def := Definition{
		Workflow: protocol.Workflow{
			Name: d.name.text, Description: d.description, Limits: d.limits,
			Roles: map[string]protocol.Role{}, Graph: map[string]protocol.GraphNode{}, Language: d.language,
		},
		Schemas: map[string]any{}, Uses: d.uses, Notices: append(d.olderNotices(), d.Notices...),
	}
	for _, r := range d.roles {
		def.Roles[r.name] = r.role
		def.Schemas[r.name] = r.schema
	}
	for _, i := range d.inputs {
		if def.Inputs == nil {
			def.Inputs, def.InputSchemas = map[string]protocol.Input{}, map[string]any{}
		}
		def.Inputs[i.name], def.InputSchemas[i.name] = i.input(), i.schema
	}
	for _, c := range d.conditions {
		if def.Conditions == nil {
			def.Conditions = map[string]protocol.Condition{}
		}
		def.Conditions[c.name] = protocol.Condition{Description: c.description, Expression: c.text}
	}
	for _, n := range d.nodes {
		def.Graph[n.name] = d.node(n)
	}
	return def
}

func (d *draft) node(n *nodeDraft) protocol.GraphNode {
	if n.list || n.guarded {
		list := make([]protocol.Transition, len(n.edges))
		for i, e := range n.edges {
			list[i] = protocol.Transition{Edge: e.edge, Condition: e.when}
			if !n.list {
				list[i].Condition = d.guard(n, e)
			}
		}
		return protocol.GraphNode{Transitions: list}
	}
	edges := make(map[string]protocol.Edge, len(n.edges))
	for _, e := range n.edges {
		edges[e.status] = e.edge
	}
	return protocol.GraphNode{Edges: edges}
}

// Store turns a definition into its stored form; putSchema stores a role's
// or an input's schema (its title set to "<workflow>.<role>" or
// "<workflow>.$inputs.<input>" if it had none) and returns its hash. Roles are stored
// in the order of their names, and then the inputs.
func (d Definition) Store(putSchema func(name string, schema any) (protocol.Hash, error)) (protocol.Workflow, error) {
	w := d.Workflow
	w.Roles = maps.Clone(d.Roles)
	for _, name := range slices.Sorted(maps.Keys(d.Roles)) {
		hash, err := putSchema(name, titled(d.Schemas[name], d.Name+"."+name))
		if err != nil {
			return protocol.Workflow{}, fmt.Errorf("store the schema of role %q: %w", name, err)
		}
		role := d.Roles[name]
		role.Frontmatter = hash
		w.Roles[name] = role
	}
	w.Inputs = maps.Clone(d.Inputs)
	for _, name := range slices.Sorted(maps.Keys(d.Inputs)) {
		hash, err := putSchema(name, titled(d.InputSchemas[name], InputTitle(d.Name, name)))
		if err != nil {
			return protocol.Workflow{}, fmt.Errorf("store the schema of input %q: %w", name, err)
		}
		input := d.Inputs[name]
		input.Schema = hash
		w.Inputs[name] = input
	}
	return w, nil
}

// InputTitle is the title of the schema of an input that has none of its own.
func InputTitle(workflow, input string) string {
	return workflow + "." + protocol.InputsVariable + "." + input
}

func (d Definition) inputNames() []string { return slices.Sorted(maps.Keys(d.Inputs)) }

func titled(schema any, title string) any {
	object, ok := schema.(map[string]any)
	if _, has := object["title"]; !ok || has {
		return schema
	}
	object = maps.Clone(object)
	object["title"] = title
	return object
}
