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
		doc = append(doc, yamltext.Entry{Key: "conditions", Value: byName(def.Conditions, condition), Blank: true})
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
		i := def.Inputs[name]
		fields := yamltext.Map{{Key: "schema", Value: schema(def.InputSchemas[name])}}
		if i.Default != nil {
			fields = append(fields, yamltext.Entry{Key: "default", Value: i.Default})
		}
		m = append(m, yamltext.Entry{Key: name, Value: append(fields, given("description", i.Description)...)})
	}
	return m
}

func roles(def workflow.Definition) yamltext.Map {
	m := yamltext.Map{}
	for _, name := range flow.Roles(def.Workflow) {
		m = append(m, yamltext.Entry{Key: name, Value: role(def.Roles[name], def.Schemas[name]), Blank: true})
	}
	return m
}

func role(r protocol.Role, answer any) yamltext.Map {
	m := given("description", r.Description)
	switch r.Player() {
	case protocol.PlayedByAgent:
		m = yamltext.Map{{Key: "description", Value: r.Description}, {Key: "goal", Value: r.Goal},
			{Key: "capabilities", Value: strings(r.Capabilities)}}
	case protocol.PlayedByPerson:
		m = yamltext.Map{{Key: "description", Value: r.Description}}
	}
	var run, shell any = strings(r.Run), strings(r.Shell)
	if r.Script != "" {
		run = r.Script
	}
	if name := workflow.ShellName(r.Shell); name != "" && len(r.Shell) > 0 {
		shell = name
	}
	m = append(m, given("procedure", r.Procedure, "output", r.Output, "extractPrompt", r.ExtractPrompt,
		"run", run, "shell", shell, "env", byName(r.Env, func(text string) any { return text }),
		"parse", string(r.Parse), "timeout", span(r.TimeoutMs), "person", r.Person,
		"workflow", string(r.Workflow), "vars", r.Inputs, "compute", r.Compute,
		"all", byName(r.All, func(c protocol.ChildRole) any { return child(c) }), "each", each(r.Each),
		"parallel", r.Parallel, "workspace", r.Workspace, "merge", r.Merge, "onFailure", string(r.OnFailure),
		"join", r.Join)...)
	if !isImplied(r, answer) {
		m = append(m, yamltext.Entry{Key: "schema", Value: schema(answer)})
	}
	return m
}

// given returns those keys that have a value, from pairs of a key and a value.
func given(pairs ...any) (m yamltext.Map) {
	for pair := range slices.Chunk(pairs, 2) {
		v := reflect.ValueOf(pair[1])
		empty := v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
		if key, ok := pair[0].(string); ok && !empty {
			m = append(m, yamltext.Entry{Key: key, Value: pair[1]})
		}
	}
	return m
}

// byName formats the values of a map, sorted by name.
func byName[V any](all map[string]V, format func(V) any) (m yamltext.Map) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m = append(m, yamltext.Entry{Key: name, Value: format(all[name])})
	}
	return m
}

// isImplied reports whether a role's schema is the one that it has without any in the file.
func isImplied(r protocol.Role, schema any) bool {
	implied := protocol.AnswerSchema()
	switch player := r.Player(); {
	case player == protocol.PlayedByCommand && r.Parse == "":
		return true
	case r.HasChildren() && r.Join == "" && r.Compute == "":
		if implied = moderator.JoinSchema(); r.Merge {
			implied = moderator.MergeSchema()
		}
	case player != protocol.PlayedByAgent:
		return false
	}
	return reflect.DeepEqual(schema, any(implied))
}

func each(r *protocol.EachRole) yamltext.Map {
	if r == nil {
		return nil
	}
	return slices.Concat(yamltext.Map{{Key: "of", Value: r.Of}}, child(r.ChildRole), given("max", r.Max))
}

func child(c protocol.ChildRole) yamltext.Map {
	return given("role", c.Role, "workflow", string(c.Workflow), "when", c.When, "prompt", c.Prompt, "vars", c.Inputs)
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

// condition formats a condition; one without a description becomes only its expression.
func condition(c protocol.Condition) any {
	if c.Description == "" {
		return c.Expression
	}
	return yamltext.Map{{Key: "description", Value: c.Description}, {Key: "expression", Value: c.Expression}}
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
	return append(yamltext.Map{{Key: "role", Value: way.Role}},
		given("when", way.Condition, "prompt", way.Prompt, "location", way.Location)...)
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
