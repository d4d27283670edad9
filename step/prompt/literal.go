package prompt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

var plainString = lazyregexp.New(`^[A-Za-z_$][\w$.-]*( [\w$.-]+)*$`)

// literal writes a JSON value as YAML on one line. A string that YAML would read
// as something else is quoted.
func literal(v any) string {
	s, ok := v.(string)
	if !ok || !plainString().MatchString(s) {
		return compactJSON(v)
	}
	switch strings.ToLower(s) {
	case "null", "true", "false":
		return compactJSON(v)
	}
	return s
}

// maxNesting is how deep an example shows the inside of objects and lists.
const maxNesting = 4

// example is the field in the example block: a line, and more for lists and objects.
func (f field) example(indent string, depth int) []string {
	s, nullable := unwrap(f.schema)
	key := indent + literal(f.name) + ":"
	value, more, notes := sketch(s, indent+"  ", depth)
	if nullable {
		notes = append(notes, "or null")
	}
	if f.required {
		notes = append([]string{"required"}, notes...)
	}
	if value != "" {
		key += " " + value
	}
	if len(notes) > 0 {
		key += "  # " + strings.Join(notes, " | ")
	}
	return append([]string{key}, more...)
}

// sketch shows a value of a schema: either on the key's line or on lines of its
// own, with notes for the comment.
func sketch(s map[string]any, indent string, depth int) (value string, more, notes []string) {
	if v, ok := s["const"]; ok {
		return literal(v), nil, []string{"fixed value"}
	}
	if vs := choices(s); vs != nil {
		for _, v := range vs {
			notes = append(notes, literal(v))
		}
		return literal(vs[0]), nil, notes
	}
	switch typeOf(s) {
	case "boolean":
		return "true", nil, []string{"true", "false"}
	case "string":
		return placeholder(s), nil, nil
	case "number", "integer":
		return "<number>", nil, nil
	case "array":
		return "", sketchItem(s["items"], indent, depth), nil
	case "object":
		if lines := sketchObject(s, indent, depth); lines != nil {
			return "", lines, nil
		}
		return "<object>", nil, nil
	}
	return "<value>", nil, nil
}

func sketchItem(items any, indent string, depth int) []string {
	s, _ := unwrap(items)
	if len(s) == 0 {
		return []string{indent + "- <item>"}
	}
	if lines := sketchObject(s, indent+"  ", depth); lines != nil {
		lines[0] = indent + "- " + strings.TrimPrefix(lines[0], indent+"  ")
		return lines
	}
	value, _, notes := sketch(s, "", maxNesting)
	if value == "" {
		value = "<item>" // a list of lists
	}
	line := indent + "- " + value
	if len(notes) > 0 {
		line += "  # " + strings.Join(notes, " | ")
	}
	return []string{line}
}

// sketchObject shows the fields of an object, nil if it names none.
func sketchObject(s map[string]any, indent string, depth int) []string {
	if depth >= maxNesting {
		return nil
	}
	var lines []string
	for _, f := range fieldsOf(s) {
		lines = append(lines, f.example(indent, depth+1)...)
	}
	return lines
}

// placeholder stands for a string.
func placeholder(s map[string]any) string {
	switch format := text(s["format"]); format {
	case "":
		return "<string>"
	case "ocas_ref", "cas_ref":
		return "<hash>"
	default:
		return "<" + oneLine(format) + ">"
	}
}

// typeOf is the type that a schema names or implies, "" if it names none or several.
func typeOf(s map[string]any) string {
	if t := text(s["type"]); t != "" {
		return t
	}
	if s["properties"] != nil {
		return "object"
	}
	return ""
}

// unwrap takes "or null" off a schema.
func unwrap(schema any) (s map[string]any, nullable bool) {
	s, _ = schema.(map[string]any)
	if types := list(s["type"]); len(types) == 2 {
		if i := slices.Index(types, any("null")); i >= 0 {
			return with(s, "type", types[1-i]), true
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		subs := list(s[keyword])
		for i, sub := range subs {
			if m, _ := sub.(map[string]any); len(subs) == 2 && text(m["type"]) == "null" {
				other, _ := subs[1-i].(map[string]any)
				return with(other, "description", s["description"]), true
			}
		}
	}
	return s, false
}

// with is a copy of s with one more keyword, if v is something.
func with(s map[string]any, keyword string, v any) map[string]any {
	out := make(map[string]any, len(s)+1)
	maps.Copy(out, s)
	if v != nil {
		out[keyword] = v
	}
	return out
}

// describe tells what the example cannot show: the description and the limits.
func (f field) describe() string {
	s, _ := unwrap(f.schema)
	var parts []string
	if d := oneLine(text(s["description"])); d != "" {
		parts = append(parts, d)
	}
	for _, keyword := range []string{"format", "pattern", "minLength", "maxLength", "minimum", "maximum",
		"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"} {
		if v, ok := s[keyword]; ok {
			parts = append(parts, fmt.Sprintf("%s %s", keyword, literalOf(keyword, v)))
		}
	}
	return strings.Join(parts, "; ")
}

func literalOf(keyword string, v any) string {
	if keyword == "pattern" {
		return "`" + oneLine(text(v)) + "`"
	}
	return literal(v)
}

// indented is a value as JSON over several lines, for a schema that is shown whole.
func indented(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return compactJSON(v)
	}
	return string(b)
}
