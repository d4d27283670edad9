// Package workflow parses workflow files. It converts YAML to a definition, or returns a list of problems,
// each with its position and a remedy. It doesn't access a store.
//
// Parsing has two phases. The first reads the text into a draft that knows all positions (read*.go). It
// resolves included files (package source), converts the older form and short forms (older.go, short.go), and
// reports malformed parts. The second checks the draft: the graph (read_graph.go), whether a role's edges
// match the statuses in its schema (status.go), conditions (condition.go), schemas, and templates against the
// fields of a role's answer (template.go, fields.go). All problems are collected, so that an author sees them
// at once.
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

// Definition is a workflow as its author wrote it: roles contain their schemas instead of hashes.
type Definition struct {
	protocol.Workflow                // with empty Roles[*].Frontmatter and Inputs[*].Schema
	Schemas           map[string]any // role → JSON Schema of its output, as a JSON value
	InputSchemas      map[string]any // input → JSON Schema of its value; nil without inputs
	Uses              []Used         // workflows that roles run, to be stored together with this one
	// Notices are warnings to the author that aren't errors.
	Notices []string
}

// Source describes a file to parse.
type Source struct {
	File string // name of the file in messages
	// Path determines the required name of the workflow: that of the file, or of the folder for index.yaml.
	// It defaults to File. If both are "", any name is valid.
	Path string
	// Dir is the directory that "!include" can read; nil disables the tag.
	Dir *os.Root
	// Node returns the payload of a stored node, for a role or schema given by its hash; nil disables such
	// references.
	Node func(protocol.Hash) (payload any, err error)
	// Workflow resolves the path or name of a workflow that a role runs; nil disables such roles.
	Workflow func(name string) (Used, error)
	Data     []byte
}

// Parse parses and checks a file. The error is a *[Problems].
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

// check reports problems in a well-formed draft.
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
	if start := d.nodeByName[protocol.StartNode]; start != nil { // its notices matter most, and their number is limited
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

// definition returns the draft without positions.
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
		list, others := make([]protocol.Transition, 0, len(n.edges)), []protocol.Transition(nil)
		for _, e := range n.edges {
			t := protocol.Transition{Edge: e.edge, Condition: e.when}
			if !n.list {
				t.Condition = d.guard(n, e)
			}
			if e.status == protocol.DefaultStatus { // it takes what no other status takes
				others = append(others, t)
				continue
			}
			list = append(list, t)
		}
		return protocol.GraphNode{Transitions: append(list, others...)}
	}
	edges := make(map[string]protocol.Edge, len(n.edges))
	for _, e := range n.edges {
		edges[e.status] = e.edge
	}
	return protocol.GraphNode{Edges: edges}
}

// Store converts a definition to its stored form. putSchema stores the schema of a role or an input and
// returns its hash; a schema without a title gets "<workflow>.<role>" or "<workflow>.$inputs.<input>". Roles
// are stored in the order of their names, followed by the inputs.
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

// InputTitle returns the default title of an input's schema.
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
