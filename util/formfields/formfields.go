// Package formfields converts a JSON Schema to a form: its fields, and the values for typed texts. It doesn't
// validate the result against the schema.
package formfields

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Field is a field of a form.
type Field struct {
	Name        string
	Required    bool   // and without a default
	Default     string // as a person types it; "" for none
	Description string
	Types       []string // JSON Schema types; empty for any
	Choices     []string // the only allowed texts, if restricted

	schemas []any
}

// Fields returns the fields of a schema: those in lead first, then required ones, then the others by name. If
// a field distinguishes alternatives, only those that match given are included; until that field is given,
// only the fields common to all.
func Fields(schema any, given map[string]any, lead ...string) []Field {
	c := collector{fields: map[string]*Field{}}
	c.add(schema, given)
	for _, name := range slices.Backward(lead) {
		if _, ok := c.fields[name]; ok {
			c.order = slices.Insert(c.order, 0, name)
		}
	}
	c.order = append(c.order, slices.Sorted(maps.Keys(c.fields))...)
	var fields []Field
	seen := map[string]bool{}
	for _, name := range c.order {
		if f, ok := c.fields[name]; ok && !seen[name] {
			seen[name] = true
			f.Required = f.Required && f.Default == ""
			fields = append(fields, *f)
		}
	}
	return fields
}

// Of returns a schema as a field without a name.
func Of(schema any) Field {
	f := Field{}
	f.learn(schema)
	return f
}

// Named returns the field with a name, in any alternative; false if the schema doesn't declare it.
func Named(schema any, name string) (Field, bool) {
	f := Field{Name: name}
	f.find(schema)
	return f, len(f.schemas) > 0
}

func (f *Field) find(schema any) {
	m, _ := schema.(map[string]any)
	properties, _ := m["properties"].(map[string]any)
	if s, ok := properties[f.Name]; ok {
		f.learn(s)
	}
	for _, key := range alternatives() {
		list, _ := m[key].([]any)
		for _, s := range list {
			f.find(s)
		}
	}
}

func alternatives() []string { return []string{"oneOf", "anyOf", "allOf"} }

// collector collects the fields of a schema.
type collector struct {
	fields map[string]*Field
	order  []string // order of required fields
}

func (c *collector) add(schema any, given map[string]any) {
	m, _ := schema.(map[string]any)
	properties, _ := m["properties"].(map[string]any)
	for name, s := range properties {
		c.field(name).learn(s)
	}
	required, _ := m["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			c.field(name).Required = true
			c.order = append(c.order, name)
		}
	}
	for _, key := range alternatives() {
		list, _ := m[key].([]any)
		if key == "allOf" {
			for _, s := range list {
				c.add(s, given)
			}
			continue
		}
		c.choose(list, given)
	}
}

// choose adds the alternatives that match the given values.
func (c *collector) choose(list []any, given map[string]any) {
	if len(list) == 0 {
		return
	}
	list, _ = jsonschema.Unfolded(list)
	name, values := jsonschema.Discriminator(list)
	if name == "" {
		return // nothing distinguishes them
	}
	f := c.field(name)
	f.Required = true
	c.order = append(c.order, name)
	for i, v := range values {
		if is, ok := given[name]; ok && is == v {
			c.add(list[i], given)
		}
		if text, ok := v.(string); ok && !slices.Contains(f.Choices, text) {
			f.Choices = append(f.Choices, text)
			f.schemas = append(f.schemas, map[string]any{"const": text})
		}
	}
}

func (c *collector) field(name string) *Field {
	f, ok := c.fields[name]
	if !ok {
		f = &Field{Name: name}
		c.fields[name] = f
	}
	return f
}

// learn adds a schema's constraints on the field.
func (f *Field) learn(schema any) {
	f.schemas = append(f.schemas, schema)
	m, _ := schema.(map[string]any)
	if text, ok := m["description"].(string); ok && f.Description == "" {
		f.Description = text
	}
	if value, ok := m["default"]; ok && f.Default == "" {
		f.Default = plain(value)
	}
	values, _ := m["enum"].([]any)
	if value, ok := m["const"]; ok {
		values = append(values, value)
	}
	for _, v := range values {
		if text := plain(v); !slices.Contains(f.Choices, text) {
			f.Choices = append(f.Choices, text)
		}
	}
	types, _ := m["type"].([]any)
	if one, ok := m["type"].(string); ok {
		types = []any{one}
	}
	for _, t := range types {
		if name, ok := t.(string); ok && !slices.Contains(f.Types, name) {
			f.Types = append(f.Types, name)
		}
	}
}

// plain formats a value as a person types it.
func plain(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// Value converts a typed text to the field's value.
func (f Field) Value(text string) (any, error) {
	for _, s := range f.schemas {
		m, _ := s.(map[string]any)
		values, _ := m["enum"].([]any)
		if value, ok := m["const"]; ok {
			values = append(values, value)
		}
		for _, v := range values {
			if plain(v) == text {
				return v, nil
			}
		}
	}
	if !slices.Contains(f.Types, "string") && len(f.Choices) == 0 {
		if doc, err := yamldoc.ParseAnswer([]byte(text), yamldoc.Bounds{}); err == nil {
			if bad := doc.Root.Rounded(); bad != nil {
				return nil, errors.New(bad.Message)
			}
		}
	}
	if len(f.Types) == 0 {
		if len(f.Choices) > 0 {
			return text, nil
		}
		return anything(text), nil
	}
	for _, kind := range []string{"string", "integer", "number", "boolean", "null", "array", "object"} {
		if slices.Contains(f.Types, kind) {
			if v, ok := as(kind, text); ok {
				return v, nil
			}
		}
	}
	return nil, fmt.Errorf("must be %s, not %q", f.Kind(), plaintext.Short(text, 200))
}

// Kind describes the field's values.
func (f Field) Kind() string {
	words := map[string]string{
		"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
		"null": "null", "array": "a list", "object": "a mapping",
	}
	var all []string
	for _, kind := range f.Types {
		all = append(all, words[kind])
	}
	return strings.Join(all, " or ")
}

// as parses a text as a value of a type.
func as(kind, text string) (any, bool) {
	word := strings.TrimSpace(text)
	switch kind {
	case "string":
		return text, true
	case "integer":
		n, err := strconv.ParseInt(word, 10, 64)
		return n, err == nil
	case "number":
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			return n, true
		}
		n, err := strconv.ParseFloat(word, 64)
		return n, err == nil
	case "boolean":
		yes := slices.Contains([]string{"true", "yes", "y"}, strings.ToLower(word))
		no := slices.Contains([]string{"false", "no", "n"}, strings.ToLower(word))
		return yes, yes || no
	case "null":
		return nil, word == "null"
	case "array":
		if list, ok := anything(text).([]any); ok {
			return list, true
		}
		return words(word), !strings.ContainsAny(word, "[]{}:")
	}
	v, ok := anything(text).(map[string]any)
	return v, ok
}

// words splits a list written without brackets.
func words(text string) []any {
	list := []any{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// anything parses a text as YAML, or returns the text itself if it is invalid.
func anything(text string) any {
	doc, err := yamldoc.ParseAnswer([]byte(text), yamldoc.Bounds{})
	if err != nil {
		return text
	}
	return doc.Root.Value()
}
