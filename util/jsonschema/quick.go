package jsonschema

import (
	"math"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema/internal/dialect"
)

// quick tells of most valid values that they are valid, at a tenth of what the
// library costs. It is sound, not complete: what it accepts, the library accepts;
// of what it does not accept it knows nothing, and the library decides. depth is
// how deep the value lies. A test holds the two against each other.
type quick func(v any, depth int) bool

// quickDepth is below the depth that is refused: what lies deeper is the
// library's.
const quickDepth = maxDepth / 2

// newQuick compiles a schema that [Check] has found nothing wrong with. A keyword
// that it does not know makes it accept nothing.
func newQuick(schema any) quick {
	s, ok := schema.(map[string]any)
	if !ok {
		return nothing
	}
	if len(s) == 0 {
		return anyValue
	}
	var all []quick
	for name, arg := range s {
		if isNote(name) {
			continue
		}
		q := quickKeyword(s, name, arg)
		if q == nil {
			return nothing
		}
		all = append(all, q)
	}
	all = append(all, anyScalar(s))
	return func(v any, depth int) bool {
		for _, q := range all {
			if !q(v, depth) {
				return false
			}
		}
		return true
	}
}

func nothing(any, int) bool { return false }

// isNote reports whether a keyword asserts nothing.
func isNote(name string) bool {
	switch name {
	case "title", "description", "$comment", "default", "examples", "readOnly", "writeOnly", "deprecated":
		return true
	}
	return false
}

// quickKeyword is what one keyword demands; nil: it is not known here.
func quickKeyword(s map[string]any, name string, arg any) quick {
	switch name {
	case "type":
		return quickType(arg)
	case "enum":
		values, _ := arg.([]any)
		return quickEnum(values)
	case "const":
		return quickEnum([]any{arg})
	case "format":
		if arg != "ocas_ref" && arg != "cas_ref" {
			return nil
		}
		return func(v any, _ int) bool { text, ok := v.(string); return !ok || protocol.Hash(text).Valid() }
	case "required":
		return quickRequired(arg)
	case "properties":
		return quickProperties(s, arg)
	case "additionalProperties":
		if _, ok := s["properties"]; ok {
			return always // properties sees to it
		}
		return quickProperties(s, map[string]any{})
	case "items":
		return quickItems(newQuick(arg))
	case "anyOf":
		return quickAnyOf(arg)
	case "minimum":
		limit, ok := dialect.Float(arg)
		return func(v any, _ int) bool { n, isNumber := dialect.Float(v); return ok && (!isNumber || n >= limit) }
	}
	return nil
}

func always(any, int) bool { return true }

// anyScalar accepts what has nothing inside that no keyword has looked at: the
// library would refuse what is no JSON value, however free the schema.
func anyScalar(s map[string]any) quick {
	_, properties := s["properties"]
	_, additional := s["additionalProperties"]
	_, items := s["items"]
	_, anyOf := s["anyOf"]
	return func(v any, depth int) bool {
		switch v.(type) {
		case map[string]any:
			return properties || additional || anyOf || anyValue(v, depth)
		case []any:
			return items || anyOf || anyValue(v, depth)
		}
		return anyValue(v, depth)
	}
}

// anyValue accepts every JSON value that is not nested too deep.
func anyValue(v any, depth int) bool {
	if depth > quickDepth {
		return false
	}
	switch v := v.(type) {
	case nil, bool, string, int64:
		return true
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case []any:
		for _, item := range v {
			if !anyValue(item, depth+1) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, item := range v {
			if !anyValue(item, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// quickType knows the types that [cas.Decode] makes. A number with a fraction of
// zero is the library's.
func quickType(arg any) quick {
	if name, ok := arg.(string); ok {
		return func(v any, _ int) bool { return isType(v, name) }
	}
	names, _ := arg.([]any)
	return func(v any, _ int) bool {
		for _, name := range names {
			if name, ok := name.(string); ok && isType(v, name) {
				return true
			}
		}
		return false
	}
}

func isType(v any, name string) bool {
	switch v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case nil:
		return name == "null"
	case int64:
		return name == "integer" || name == "number"
	case float64:
		return name == "number"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}

// quickEnum knows strings and what has no content; numbers and the rest are the
// library's.
func quickEnum(values []any) quick {
	return func(v any, _ int) bool {
		switch v.(type) {
		case string, bool, nil:
			for _, want := range values {
				switch want.(type) {
				case string, bool, nil:
					if want == v {
						return true
					}
				}
			}
		}
		return false
	}
}

func quickRequired(arg any) quick {
	var names []string
	list, _ := arg.([]any)
	for _, item := range list {
		name, ok := item.(string)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return func(v any, _ int) bool {
		m, ok := v.(map[string]any)
		if !ok {
			return true
		}
		for _, name := range names {
			if _, there := m[name]; !there {
				return false
			}
		}
		return true
	}
}

// quickProperties sees to properties and additionalProperties together.
func quickProperties(s map[string]any, arg any) quick {
	properties, ok := arg.(map[string]any)
	if _, patterns := s["patternProperties"]; !ok || patterns {
		return nil
	}
	known := map[string]quick{}
	for name, schema := range properties {
		known[name] = newQuick(schema)
	}
	others := anyValue
	switch additional := s["additionalProperties"].(type) {
	case nil:
	case bool:
		if !additional {
			others = nothing
		}
	default:
		others = newQuick(additional)
	}
	return func(v any, depth int) bool {
		m, ok := v.(map[string]any)
		if !ok {
			return true
		}
		if depth >= quickDepth {
			return false
		}
		for name, item := range m {
			check, named := known[name]
			if !named {
				check = others
			}
			if !check(item, depth+1) {
				return false
			}
		}
		return true
	}
}

func quickItems(item quick) quick {
	return func(v any, depth int) bool {
		list, ok := v.([]any)
		if !ok {
			return true
		}
		if depth >= quickDepth {
			return false
		}
		for _, element := range list {
			if !item(element, depth+1) {
				return false
			}
		}
		return true
	}
}

func quickAnyOf(arg any) quick {
	list, _ := arg.([]any)
	var branches []quick
	for _, schema := range list {
		branches = append(branches, newQuick(schema))
	}
	return func(v any, depth int) bool {
		for _, branch := range branches {
			if branch(v, depth) {
				return true
			}
		}
		return false
	}
}
