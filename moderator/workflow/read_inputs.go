package workflow

import (
	"context"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// inputDraft is an entry of "inputs".
type inputDraft struct {
	name        string
	description string
	schema      any           // nil if it has the wrong shape
	yaml        *yamldoc.Node // of the schema
	fallback    *yamldoc.Node // nil: none
}

// exampleInput is an input as most are.
const exampleInput = "{schema: {type: string}, description: …}"

// inputPattern is what a name in a template, in JSONata and on a command line may be.
var inputPattern = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]*$`)

func (d *draft) readInputs(n *yamldoc.Node) {
	if n == nil {
		return
	}
	if isUnread(n) {
		d.lostInputs = true
		return
	}
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "inputs: {branch: "+exampleInput+"}", "inputs must be a mapping from name to input, but this is %s", kindOf(n))
		d.lostInputs = true
		return
	}
	for _, e := range n.Entries {
		if i := d.readInput(e); i != nil {
			d.inputs = append(d.inputs, i)
		}
	}
}

func (d *draft) readInput(e yamldoc.Entry) *inputDraft {
	i := &inputDraft{name: e.Key}
	what := "input " + quote(e.Key)
	if !inputPattern().MatchString(e.Key) || len(e.Key) > maxName {
		d.add(e.Pos, "letters, digits and _, beginning with a letter", "the input name %s cannot be used in templates and conditions", quote(e.Key))
	}
	n := e.Value
	if isUnread(n) {
		return i
	}
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, e.Key+": "+exampleInput, "%s must be a mapping, but this is %s", what, kindOf(n))
		return i
	}
	m := d.mapping(n, e.Pos, what, []field{
		{key: "schema", required: true, remedy: "the JSON Schema of its value, such as {type: string}"}, {key: "default"}, {key: "description"},
	})
	i.description, _ = d.text(m["description"], "description of "+what)
	i.fallback = m["default"]
	schema := m["schema"]
	switch {
	case schema == nil, isUnread(schema):
		return i
	case schema.Kind != yamldoc.Mapping:
		d.add(schema.Pos, "schema: {type: string}", "schema of %s must be a JSON Schema, but this is %s", what, kindOf(schema))
		return i
	}
	i.yaml, i.schema = schema, schema.Value()
	return i
}

// checkInputs checks the schemas of the inputs, and that each default is a value.
func (d *draft) checkInputs() {
	for _, i := range d.inputs {
		if i.schema == nil {
			continue
		}
		if problems := jsonschema.Check(i.schema); len(problems) > 0 {
			for _, p := range problems {
				at, remedy := d.inSchema(i.yaml, p.Path)
				d.add(at, remedy, "the schema of input %s: %s", quote(i.name), p)
			}
			continue
		}
		if i.fallback == nil {
			continue
		}
		compiled, err := jsonschema.Compile(i.schema)
		if err != nil {
			d.add(i.yaml.Pos, "", "the schema of input %s: %v", quote(i.name), err)
			continue
		}
		problems, err := compiled.Validate(context.Background(), i.fallback.Value()) // no longer than the default
		if err != nil {
			d.add(i.fallback.Pos, "", "the default of input %s: %v", quote(i.name), err)
		}
		for _, p := range problems {
			d.add(i.fallback.Pos, "", "the default of input %s does not fit its schema: %s", quote(i.name), p)
		}
	}
}

// checkInputTag checks a name in a template that begins with $inputs.
func (d *draft) checkInputTag(what string, tag mustache.Tag, at func() yamldoc.Pos) {
	if d.lostInputs {
		return
	}
	names := make([]string, len(d.inputs))
	for n, i := range d.inputs {
		names[n] = protocol.InputsVariable + "." + i.name
		if len(tag.Path) > 1 && tag.Path[1] == i.name {
			return
		}
	}
	if len(tag.Path) == 1 && tag.Kind != mustache.Variable {
		return
	}
	remedy := "declare it: inputs: {name: " + exampleInput + "}"
	if len(names) > 0 {
		remedy = d.didYouMean(tag.Name, names, "there is")
	}
	d.add(at(), remedy, "%s: %s is not an input", what, quote(tag.Name))
}

func (i *inputDraft) input() protocol.Input {
	in := protocol.Input{Description: i.description}
	if i.fallback != nil {
		in.Default = i.fallback.Value()
	}
	return in
}
