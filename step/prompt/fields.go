package prompt

import (
	"cmp"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// field is one property of an output.
type field struct {
	name     string
	schema   map[string]any
	required bool
}

// variant is one of the shapes that an output may have, with the constant that
// tells it from the others.
type variant struct {
	value  any
	fields []field
}

// fieldsOf collects the properties of a schema, those of allOf, anyOf, oneOf and
// of conditions included. A name that occurs more than once is listed once; it
// is required if any of them requires it.
func fieldsOf(schema any) []field {
	found := map[string]field{}
	collect(schema, found)
	return sorted(found, protocol.StatusKey)
}

func collect(schema any, into map[string]field) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	props, _ := s["properties"].(map[string]any)
	for name, sub := range props {
		f, known := into[name]
		f.name = name
		if sub, _ := sub.(map[string]any); known {
			f.schema = either(f.schema, sub)
		} else {
			f.schema = sub
		}
		into[name] = f
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		for _, sub := range list(s[keyword]) {
			collect(sub, into)
		}
	}
	collectIf(s, "then", into)
	collectIf(s, "else", into)
	for _, name := range list(s["required"]) {
		if f, ok := into[text(name)]; ok {
			f.required = true
			into[f.name] = f
		}
	}
}

// collectIf collects the properties of a conditional part; none of them is
// required in general.
func collectIf(s map[string]any, keyword string, into map[string]field) {
	sub := map[string]field{}
	collect(s[keyword], sub)
	for name, f := range sub {
		if _, known := into[name]; !known {
			f.required = false
			into[name] = f
		}
	}
}

// either joins what two variants say about one property: the choices of both, or
// the first if they cannot be listed.
func either(a, b map[string]any) map[string]any {
	ca, cb := choices(a), choices(b)
	if ca == nil || cb == nil {
		return a
	}
	for _, v := range cb {
		if !slices.ContainsFunc(ca, func(w any) bool { return literal(v) == literal(w) }) {
			ca = append(ca, v)
		}
	}
	if len(ca) == 1 {
		return a
	}
	return map[string]any{"enum": ca}
}

// discriminated returns the property whose constant tells the variants of a
// schema apart, and the variants; "" if there is no such property.
func discriminated(schema any) (string, []variant) {
	s, _ := schema.(map[string]any)
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if key, values := jsonschema.Discriminator(list(s[keyword])); key != "" {
			return key, variantsOf(s, keyword, key, values)
		}
	}
	return "", nil
}

func variantsOf(s map[string]any, keyword, key string, values []any) []variant {
	shared := map[string]any{}
	for k, v := range s {
		if k != keyword {
			shared[k] = v
		}
	}
	var out []variant
	for i, sub := range list(s[keyword]) {
		found := map[string]field{}
		collect(sub, found)
		f := found[key]
		collect(shared, found)
		// The shared schema may only say that the key is a string.
		f.required = found[key].required
		found[key] = f
		out = append(out, variant{value: values[i], fields: sorted(found, key)})
	}
	return out
}

// choices are the only values that a schema admits, nil if it does not list them.
func choices(s map[string]any) []any {
	if v, ok := s["const"]; ok {
		return []any{v}
	}
	if vs := list(s["enum"]); len(vs) > 0 {
		return slices.Clone(vs)
	}
	return nil
}

// sorted puts the field that decides first, then what is required, then the rest
// by name: a schema's own order is lost when it is stored.
func sorted(found map[string]field, first string) []field {
	rank := func(f field) int {
		switch {
		case f.name == first:
			return 0
		case f.name == "status":
			return 1
		case f.required:
			return 2
		}
		return 3
	}
	out := make([]field, 0, len(found))
	for _, f := range found {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b field) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name))
	})
	return out
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
