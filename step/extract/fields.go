package extract

import (
	"regexp"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// fieldSet is the fields of an object that a schema knows: those that it names,
// in itself or in a part of it that applies to the same value.
type fieldSet struct {
	names    map[string]bool
	patterns []*regexp.Regexp
	all      bool // additionalProperties asks for more than the named ones
}

func (k fieldSet) has(name string) bool {
	if k.all || k.names[name] {
		return true
	}
	for _, p := range k.patterns {
		if p.MatchString(name) {
			return true
		}
	}
	return false
}

// knownBy collects the fields that a schema knows. A schema that names none
// leaves the answer its status, so that the step can still be routed.
func knownBy(schema any) fieldSet {
	k := fieldSet{names: map[string]bool{}}
	k.collect(schema)
	if len(k.names) == 0 && len(k.patterns) == 0 {
		k.names["status"], k.names["$status"] = true, true
	}
	return k
}

func (k *fieldSet) collect(schema any) {
	m, ok := schema.(map[string]any)
	if !ok {
		return
	}
	properties, _ := m["properties"].(map[string]any)
	for name := range properties {
		k.names[name] = true
	}
	required, _ := m["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			k.names[name] = true
		}
	}
	patterns, _ := m["patternProperties"].(map[string]any)
	for pattern := range patterns {
		if re, err := regexp.Compile(pattern); err == nil {
			k.patterns = append(k.patterns, re)
		}
	}
	switch more := m["additionalProperties"].(type) {
	case bool:
		k.all = k.all || more
	case map[string]any:
		k.all = true
	}
	for _, part := range partsOf(m) {
		k.collect(part)
	}
}

// partsOf lists the schemas in a schema that apply to the same value.
func partsOf(m map[string]any) []any {
	var parts []any
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := m[keyword].([]any)
		parts = append(parts, list...)
	}
	return append(parts, m["if"], m["then"], m["else"])
}

// variantOf returns the fields of the variant that a candidate claims to be, if
// the schema has variants that a constant tells apart. Fields of the other
// variants, which models like to fill in as well, are not among them.
func variantOf(schema any, candidate map[string]any) (fieldSet, bool) {
	m, _ := schema.(map[string]any)
	for _, keyword := range []string{"oneOf", "anyOf"} {
		variants, _ := m[keyword].([]any)
		name, values := jsonschema.Discriminator(variants)
		for i, v := range values {
			if sameScalar(candidate[name], v) {
				return fieldsWith(m, keyword, variants[i]), true
			}
		}
	}
	return fieldSet{}, false
}

// fieldsWith is what a schema knows if only one variant of a keyword counts.
func fieldsWith(m map[string]any, keyword string, variant any) fieldSet {
	narrow := map[string]any{keyword: []any{variant}}
	for name, v := range m {
		if name != keyword {
			narrow[name] = v
		}
	}
	return knownBy(narrow)
}

func sameScalar(a, b any) bool {
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		return x == y
	}
	return a == b // b is a scalar, so this cannot panic
}
