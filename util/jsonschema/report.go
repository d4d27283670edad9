package jsonschema

import (
	"net/url"
	"slices"
	"strings"

	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
)

// reporter turns the library's tree of errors into problems that a model can
// act on, one a field.
type reporter struct{ schema, value any }

// problems collects what is wrong at and below an error.
func (r reporter) problems(e *lib.ValidationError) []Problem {
	if e.Message == "" { // the library's wrapper; its place ends with a name
		return r.all(e.Causes)
	}
	where := r.locate(e)
	switch where.keyword {
	case "anyOf", "oneOf":
		if len(e.Causes) > 0 {
			return r.noVariant(where, e.Causes)
		}
		return problem(where.path, "fits more than one variant, of which only one may fit; "+variantNames(where))
	case "contains", "minContains":
		return problem(where.path, "must have an item that fits "+show(where.schema["contains"]))
	case "required":
		return missing(where)
	case "additionalProperties":
		return notAllowed(where)
	}
	if len(e.Causes) == 0 {
		return problem(where.path, message(where))
	}
	return r.all(e.Causes)
}

func (r reporter) all(errors []*lib.ValidationError) []Problem {
	var all []Problem
	for _, e := range errors {
		if all = append(all, r.problems(e)...); len(all) > enough {
			break
		}
	}
	return all
}

// enough is how many problems are looked at: few of them are told.
const enough = 2000

// place is where a keyword met a value.
type place struct {
	path    string         // of the value
	value   any            // there
	keyword string         // that it does not satisfy
	schema  map[string]any // that has the keyword
	name    bool           // the keyword is about the name of the property
}

func (r reporter) locate(e *lib.ValidationError) place {
	_, fragment, _ := strings.Cut(e.AbsoluteKeywordLocation, "#")
	keyPath, valuePath := tokens(fragment), tokens(e.InstanceLocation)
	p := place{path: pointer(valuePath), value: valueAt(r.value, valuePath...)}
	if len(keyPath) > 0 {
		p.keyword = keyPath[len(keyPath)-1]
		p.schema, _ = valueAt(r.schema, keyPath[:len(keyPath)-1]...).(map[string]any)
	}
	if i := slices.Index(keyPath, "propertyNames"); i >= 0 && len(valuePath) > 0 && r.isKeyword(keyPath[:i]) {
		p.name, p.value = true, valuePath[len(valuePath)-1]
	}
	return p
}

// tokens splits a pointer as the library writes it: it also escapes for URLs.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts
}

// isKeyword reports whether a path leads to a schema, so that what follows it
// is a keyword and not the name of a property.
func (r reporter) isKeyword(path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch keywords[path[len(path)-1]] {
	case takesSchemaMap, takesPatternMap:
		return len(path) > 1 && !r.isKeyword(path[:len(path)-1])
	}
	return true
}

func problem(path, message string) []Problem {
	return []Problem{{Path: path, Message: message}}
}

// missing names each property that is required and not there.
func missing(p place) []Problem {
	have, _ := p.value.(map[string]any)
	names, _ := p.schema["required"].([]any)
	var all []Problem
	for _, name := range names {
		name, _ := name.(string)
		if _, ok := have[name]; ok {
			continue
		}
		msg := "is required, but missing"
		if properties, ok := p.schema["properties"].(map[string]any); ok {
			if want := wanted(properties[name]); want != "" {
				msg += "; it must be " + want
			}
		}
		all = append(all, Problem{Path: p.path + "/" + escape(name), Message: msg})
	}
	return all
}

// notAllowed names each property that a schema does not know.
func notAllowed(p place) []Problem {
	have, _ := p.value.(map[string]any)
	known := propertyNames(p.schema)
	var all []Problem
	for name := range have {
		if slices.Contains(known, name) || fitsPattern(p.schema, name) {
			continue
		}
		msg := "is not allowed here"
		if len(known) > 0 {
			msg += "; allowed are " + strings.Join(known, ", ")
		}
		all = append(all, Problem{Path: p.path + "/" + escape(name), Message: msg})
	}
	return all
}
