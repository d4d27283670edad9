// Package workflowtext formats a workflow as YAML that parses and stores as the same node. The text depends
// only on the workflow, so it can be kept under version control and compared.
//
// Roles are in the order in which $START reaches them, schema keys in the customary order. Comments and the
// author's own order aren't stored and are lost.
package workflowtext

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamltext"
)

// YAML formats a definition.
func YAML(def workflow.Definition) ([]byte, error) {
	doc := yamltext.Map{
		{Key: "name", Value: def.Name},
		{Key: "description", Value: def.Description},
	}
	if len(def.Inputs) > 0 {
		doc = append(doc, yamltext.Entry{Key: "inputs", Value: inputs(def), Blank: true})
	}
	doc = append(doc, yamltext.Entry{Key: "roles", Value: roles(def), Blank: true})
	if len(def.Conditions) > 0 {
		doc = append(doc, yamltext.Entry{Key: "conditions", Value: conditions(def.Conditions), Blank: true})
	}
	doc = append(doc, yamltext.Entry{Key: "graph", Value: graph(def.Workflow), Blank: true})
	if def.Limits != nil {
		doc = append(doc, yamltext.Entry{Key: "limits", Value: limits(*def.Limits), Blank: true})
	}
	text, err := yamltext.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write workflow %q: %w", def.Name, err)
	}
	return text, nil
}

func inputs(def workflow.Definition) yamltext.Map {
	m := yamltext.Map{}
	for _, name := range slices.Sorted(maps.Keys(def.Inputs)) {
		fields := yamltext.Map{{Key: "schema", Value: schema(def.InputSchemas[name])}}
		if i := def.Inputs[name]; i.Default != nil {
			fields = append(fields, yamltext.Entry{Key: "default", Value: i.Default})
		}
		if i := def.Inputs[name]; i.Description != "" {
			fields = append(fields, yamltext.Entry{Key: "description", Value: i.Description})
		}
		m = append(m, yamltext.Entry{Key: name, Value: fields})
	}
	return m
}

func roles(def workflow.Definition) yamltext.Map {
	m := yamltext.Map{}
	for _, name := range flow.Roles(def.Workflow) {
		r := def.Roles[name]
		fields := player(r)
		if p := r.Player(); r.Description != "" || p == protocol.PlayedByAgent || p == protocol.PlayedByPerson {
			fields = append(yamltext.Map{{Key: "description", Value: r.Description}}, fields...)
		}
		if !isCommand(r) && !isJoin(r, def.Schemas[name]) && !isText(r, def.Schemas[name]) {
			fields = append(fields, yamltext.Entry{Key: "schema", Value: schema(def.Schemas[name])})
		}
		m = append(m, yamltext.Entry{Key: name, Value: fields, Blank: true})
	}
	return m
}

// isCommand reports whether a role has a command's standard answer, which the file can omit.
func isCommand(r protocol.Role) bool { return r.Player() == protocol.PlayedByCommand && r.Parse == "" }

// isText reports whether an agent role answers with text, the default.
func isText(r protocol.Role, schema any) bool {
	return r.Player() == protocol.PlayedByAgent && reflect.DeepEqual(schema, any(protocol.AnswerSchema()))
}

// isJoin reports whether a role with children has the default schema.
func isJoin(r protocol.Role, schema any) bool {
	usual := moderator.JoinSchema()
	if r.Merge {
		usual = moderator.MergeSchema()
	}
	return r.HasChildren() && r.Join == "" && r.Compute == "" && reflect.DeepEqual(schema, any(usual))
}

// children returns the fields that describe a role's child threads.
func children(r protocol.Role) (fields yamltext.Map) {
	switch r.Player() {
	case protocol.PlayedByWorkflow:
		fields = yamltext.Map{{Key: "workflow", Value: string(r.Workflow)}}
		if len(r.Inputs) > 0 {
			fields = append(fields, yamltext.Entry{Key: "vars", Value: r.Inputs})
		}
	case protocol.PlayedByCompute:
		return yamltext.Map{{Key: "compute", Value: r.Compute}}
	case protocol.PlayedByAll:
		all := yamltext.Map{}
		for _, key := range slices.Sorted(maps.Keys(r.All)) {
			all = append(all, yamltext.Entry{Key: key, Value: child(r.All[key])})
		}
		fields = yamltext.Map{{Key: "all", Value: all}}
	case protocol.PlayedByEach:
		each := append(yamltext.Map{{Key: "of", Value: r.Each.Of}}, child(r.Each.ChildRole)...)
		if r.Each.Max > 0 {
			each = append(each, yamltext.Entry{Key: "max", Value: r.Each.Max})
		}
		fields = yamltext.Map{{Key: "each", Value: each}}
	}
	if r.Parallel > 0 {
		fields = append(fields, yamltext.Entry{Key: "parallel", Value: r.Parallel})
	}
	if r.Workspace != "" {
		fields = append(fields, yamltext.Entry{Key: "workspace", Value: r.Workspace})
	}
	if r.Merge {
		fields = append(fields, yamltext.Entry{Key: "merge", Value: true})
	}
	if r.OnFailure != "" {
		fields = append(fields, yamltext.Entry{Key: "onFailure", Value: string(r.OnFailure)})
	}
	if r.Join != "" {
		fields = append(fields, yamltext.Entry{Key: "join", Value: r.Join})
	}
	return fields
}

func child(c protocol.ChildRole) (fields yamltext.Map) {
	for _, e := range []yamltext.Entry{{Key: "role", Value: c.Role}, {Key: "workflow", Value: string(c.Workflow)},
		{Key: "when", Value: c.When}, {Key: "prompt", Value: c.Prompt}} {
		if e.Value != "" {
			fields = append(fields, e)
		}
	}
	if len(c.Inputs) > 0 {
		fields = append(fields, yamltext.Entry{Key: "vars", Value: c.Inputs})
	}
	return fields
}

// player returns the fields that describe a role's player and its instructions.
func player(r protocol.Role) (fields yamltext.Map) {
	texts := []yamltext.Entry{{Key: "parse", Value: string(r.Parse)}, {Key: "timeout", Value: span(r.TimeoutMs)}}
	switch r.Player() {
	case protocol.PlayedByCommand:
		fields = command(r)
	case protocol.PlayedByPerson:
		return yamltext.Map{{Key: "person", Value: true}}
	case protocol.PlayedByWorkflow, protocol.PlayedByAll, protocol.PlayedByEach, protocol.PlayedByCompute:
		return children(r)
	default:
		fields = yamltext.Map{{Key: "goal", Value: r.Goal}, {Key: "capabilities", Value: strings(r.Capabilities)}}
		texts = []yamltext.Entry{{Key: "procedure", Value: r.Procedure}, {Key: "output", Value: r.Output},
			{Key: "extractPrompt", Value: r.ExtractPrompt}}
	}
	for _, e := range texts {
		if e.Value != "" {
			fields = append(fields, e)
		}
	}
	return fields
}

// command returns the fields of a command role.
func command(r protocol.Role) yamltext.Map {
	fields := yamltext.Map{{Key: "run", Value: strings(r.Run)}}
	if r.Script != "" {
		fields[0].Value = r.Script
	}
	if len(r.Shell) > 0 {
		shell := yamltext.Entry{Key: "shell", Value: strings(r.Shell)}
		if name := workflow.ShellName(r.Shell); name != "" {
			shell.Value = name
		}
		fields = append(fields, shell)
	}
	if len(r.Env) > 0 {
		env := yamltext.Map{}
		for _, name := range slices.Sorted(maps.Keys(r.Env)) {
			env = append(env, yamltext.Entry{Key: name, Value: r.Env[name]})
		}
		fields = append(fields, yamltext.Entry{Key: "env", Value: env})
	}
	return fields
}

// span formats a duration, "" for none.
func span(ms int64) string {
	if ms == 0 {
		return ""
	}
	return protocol.Span(time.Duration(ms) * time.Millisecond)
}

func strings(list []string) yamltext.List {
	l := yamltext.List{}
	for _, s := range list {
		l = append(l, s)
	}
	return l
}

// conditions formats the conditions; one without a description becomes only its expression.
func conditions(all map[string]protocol.Condition) yamltext.Map {
	m := yamltext.Map{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		if c.Description == "" {
			m = append(m, yamltext.Entry{Key: name, Value: c.Expression})
			continue
		}
		m = append(m, yamltext.Entry{Key: name, Value: yamltext.Map{
			{Key: "description", Value: c.Description}, {Key: "expression", Value: c.Expression},
		}})
	}
	return m
}

// graph formats $START, the roles in their order, then any other nodes.
func graph(w protocol.Workflow) yamltext.Map {
	names := append([]string{protocol.StartNode}, flow.Roles(w)...)
	for _, name := range slices.Sorted(maps.Keys(w.Graph)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	m := yamltext.Map{}
	for _, name := range names {
		if n, ok := w.Graph[name]; ok {
			m = append(m, yamltext.Entry{Key: name, Value: node(w, name, n)})
		}
	}
	return m
}

func node(w protocol.Workflow, name string, n protocol.GraphNode) any {
	if n.Transitions != nil {
		l := yamltext.List{}
		for _, way := range flow.Ways(w, name) {
			l = append(l, edge(way))
		}
		return l
	}
	m := yamltext.Map{}
	for _, way := range flow.Ways(w, name) {
		var value any = edge(way)
		if way.Prompt == "" && way.Location == "" {
			value = way.Role
		}
		m = append(m, yamltext.Entry{Key: way.Status, Value: value})
	}
	return m
}

func edge(way flow.Way) yamltext.Map {
	m := yamltext.Map{{Key: "role", Value: way.Role}}
	for _, e := range []yamltext.Entry{
		{Key: "when", Value: way.Condition}, {Key: "prompt", Value: way.Prompt}, {Key: "location", Value: way.Location},
	} {
		if e.Value != "" {
			m = append(m, e)
		}
	}
	return m
}

func limits(l protocol.Limits) yamltext.Map {
	m := yamltext.Map{}
	for _, x := range protocol.AllLimits() {
		switch {
		case x.Number(l) == 0:
		case x.Unit == protocol.UnitMs:
			m = append(m, yamltext.Entry{Key: x.Key, Value: span(int64(x.Number(l)))})
		default:
			m = append(m, yamltext.Entry{Key: x.Key, Value: x.Get(l)})
		}
	}
	return m
}

// schemaKeys lists keywords in customary order. Others go between the two groups, sorted by name.
var (
	firstKeys = [...]string{"title", "type", "const", "enum", "format", "description"}
	lastKeys  = [...]string{"properties", "items", "oneOf", "anyOf", "allOf", "not", "additionalProperties", "required"}
)

func keywordRank(key string) int {
	if i := slices.Index(firstKeys[:], key); i >= 0 {
		return i - len(firstKeys)
	}
	return slices.Index(lastKeys[:], key) + 1
}

// schema orders the keys of a JSON Schema.
func schema(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	m := yamltext.Map{}
	keys := slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		return cmp.Or(cmp.Compare(keywordRank(a), keywordRank(b)), cmp.Compare(a, b))
	})
	for _, key := range keys {
		m = append(m, yamltext.Entry{Key: key, Value: keyword(key, object)})
	}
	return m
}

// keyword orders the value of one keyword if it contains schemas.
func keyword(key string, object map[string]any) any {
	value := object[key]
	switch key {
	case "properties":
		if fields, ok := value.(map[string]any); ok {
			return properties(fields, object["required"])
		}
	case "oneOf", "anyOf", "allOf":
		if list, ok := value.([]any); ok {
			out := make(yamltext.List, len(list))
			for i, v := range list {
				out[i] = schema(v)
			}
			return out
		}
	case "items", "not", "additionalProperties":
		return schema(value)
	}
	return value
}

// properties orders the status first, then required fields in the order of "required", then the rest by name.
func properties(fields map[string]any, required any) yamltext.Map {
	order := []string{protocol.StatusKey, "status"}
	if names, ok := required.([]any); ok {
		for _, n := range names {
			if name, ok := n.(string); ok {
				order = append(order, name)
			}
		}
	}
	order = append(order, slices.Sorted(maps.Keys(fields))...)
	m := yamltext.Map{}
	seen := map[string]bool{}
	for _, name := range order {
		if field, ok := fields[name]; ok && !seen[name] {
			seen[name] = true
			m = append(m, yamltext.Entry{Key: name, Value: schema(field)})
		}
	}
	return m
}

// Restore is the inverse of [workflow.Definition.Store]: it returns the definition of a stored workflow.
// schema returns the JSON Schema with a hash; its errors are wrapped with the role's name. Titles set by
// Store are removed.
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
