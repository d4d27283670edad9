package workflowtext

import (
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
)

// Restore is the inverse of [workflow.Definition.Store]: it brings back the
// definition of a stored workflow. schema returns the JSON Schema with a hash;
// its errors are returned with the role's name. A title that storing gave to a
// schema is taken off again.
func Restore(w protocol.Workflow, schema func(protocol.Hash) (any, error)) (workflow.Definition, error) {
	def := workflow.Definition{Workflow: w, Schemas: make(map[string]any, len(w.Roles))}
	def.Roles = make(map[string]protocol.Role, len(w.Roles))
	for name, role := range w.Roles {
		s, err := schema(role.Frontmatter)
		if err != nil {
			return workflow.Definition{}, fmt.Errorf("schema of role %q: %w", name, err)
		}
		def.Schemas[name] = untitled(s, w.Name+"."+name)
		role.Frontmatter = ""
		def.Roles[name] = role
	}
	if len(w.Inputs) > 0 {
		def.Inputs, def.InputSchemas = make(map[string]protocol.Input, len(w.Inputs)), make(map[string]any, len(w.Inputs))
	}
	for name, input := range w.Inputs {
		s, err := schema(input.Schema)
		if err != nil {
			return workflow.Definition{}, fmt.Errorf("schema of input %q: %w", name, err)
		}
		def.InputSchemas[name] = untitled(s, workflow.InputTitle(w.Name, name))
		input.Schema = ""
		def.Inputs[name] = input
	}
	return def, nil
}

func untitled(schema any, title string) any {
	object, ok := schema.(map[string]any)
	if !ok || object["title"] != title {
		return schema
	}
	object = maps.Clone(object)
	delete(object, "title")
	return object
}
