package workflow

import (
	"maps"
	"slices"
	"strconv"
)

// fields describes a value by the schemas that it can match. Templates use it to check whether a field
// exists.
type fields struct {
	schemas []map[string]any
	// open means that the value can have fields that no schema declares.
	open bool
}

// maxAlternatives bounds the number of alternatives that are tracked. Only generated schemas have more; every
// field then counts as known.
const maxAlternatives = 200

// outputFields returns the fields of a role's output. Unless a schema says otherwise they are complete,
// because fields that it doesn't declare are dropped from an answer.
func outputFields(schemas ...any) fields {
	var f fields
	for _, schema := range schemas {
		f.add(schema)
	}
	if len(f.schemas) > maxAlternatives {
		return fields{open: true}
	}
	for _, s := range f.schemas {
		if extra, ok := s["additionalProperties"]; ok && extra != false || s["patternProperties"] != nil {
			f.open = true
		}
	}
	return f
}

// add adds a schema and its alternatives.
func (f *fields) add(schema any) {
	if len(f.schemas) > maxAlternatives {
		return
	}
	s, ok := schema.(map[string]any)
	if !ok {
		f.open = true // true: anything
		return
	}
	f.schemas = append(f.schemas, s)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := s[key].([]any)
		for _, alternative := range list {
			f.add(alternative)
		}
	}
	for _, key := range []string{"then", "else"} {
		if alternative, ok := s[key]; ok {
			f.add(alternative)
		}
	}
}

// addValue adds the schema of a nested value. Nothing is dropped there, so an object is complete only if its
// schema forbids other fields.
func (f *fields) addValue(schema any) {
	before := len(f.schemas)
	f.add(schema)
	restricted := false // whether the schema restricts the value
	for _, s := range f.schemas[before:] {
		_, named := s["properties"]
		extra, hasExtra := s["additionalProperties"]
		switch {
		case hasExtra && extra != false, s["patternProperties"] != nil:
			f.open = true
		case named, s["const"] != nil, s["enum"] != nil, s["items"] != nil:
			restricted = true
		case s["type"] != nil:
			restricted = restricted || !mayBe(s, "object")
		}
	}
	if !restricted {
		f.open = true
	}
}

// field returns a field's description; known is false if the field can't exist. A text has a length only
// within a path; see package mustache.
func (f fields) field(name string, inPath bool) (_ fields, known bool) {
	var out fields
	for _, s := range f.schemas {
		if properties, ok := s["properties"].(map[string]any); ok {
			if schema, ok := properties[name]; ok {
				out.addValue(schema)
				known = true
			}
		}
		list := mayBe(s, "array")
		if name == "length" && (list || inPath && mayBe(s, "string")) {
			out.addValue(map[string]any{"type": "integer"})
			known = true
		}
		if _, err := strconv.Atoi(name); err == nil && list {
			out.addItems(s)
			known = true
		}
	}
	if !known && f.open {
		return fields{open: true}, true
	}
	return out, known
}

// mayBe reports whether a schema's value is, or can be, of a type.
func mayBe(s map[string]any, kind string) bool {
	switch t := s["type"].(type) {
	case string:
		return t == kind
	case []any:
		return slices.Contains(t, any(kind))
	}
	if value, ok := s["const"].(string); ok && value != "" {
		return kind == "string"
	}
	return kind == "array" && s["items"] != nil || kind == "string" && s["enum"] != nil
}

// addItems adds the schema of a list's items.
func (f *fields) addItems(s map[string]any) {
	switch items := s["items"].(type) {
	case map[string]any:
		f.addValue(items)
	case []any:
		for _, item := range items {
			f.addValue(item)
		}
	default:
		f.open = true
	}
}

// inSection returns the value inside a section: each item of a list, or the value itself.
func (f fields) inSection() fields {
	out := fields{open: f.open}
	for _, s := range f.schemas {
		if mayBe(s, "array") {
			out.addItems(s)
			continue
		}
		out.schemas = append(out.schemas, s)
	}
	return out
}

// texts lists the possible texts of a value, or nil if its schemas allow others.
func (f fields) texts() []string {
	var texts []string
	for _, s := range f.schemas {
		values, _ := s["enum"].([]any)
		if value, ok := s["const"]; ok {
			values = []any{value}
		}
		if f.open || values == nil {
			return nil
		}
		for _, v := range values {
			if text, ok := v.(string); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// names lists the declared fields, sorted.
func (f fields) names() []string {
	names := map[string]bool{}
	for _, s := range f.schemas {
		properties, _ := s["properties"].(map[string]any)
		for name := range properties {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// answers describes a role's answer.
type answers struct {
	any      fields            // regardless of the status
	always   fields            // of a schema without oneOf
	byStatus map[string]fields // of a oneOf, by the status of the variant; otherwise nil
}

// answersOf reads the answers from a schema. key is the field that selects the edge.
func answersOf(schema any, key string) answers {
	root, _ := schema.(map[string]any)
	variants, isOneOf := root["oneOf"].([]any)
	if !isOneOf {
		f := outputFields(root)
		return answers{any: f, always: f}
	}
	base := maps.Clone(root)
	delete(base, "oneOf")
	grouped := map[string][]any{}
	for _, variant := range variants {
		for _, status := range variantStatuses(variant, key) {
			grouped[status] = append(grouped[status], variant)
		}
	}
	a := answers{any: outputFields(root), byStatus: make(map[string]fields, len(grouped))}
	for status, group := range grouped {
		a.byStatus[status] = outputFields(append(group, base)...)
	}
	return a
}
