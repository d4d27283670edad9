package jsonschema

import (
	"slices"
)

// Discriminator finds the property that tells the variants of a oneOf or anyOf
// apart: each variant gives it another constant. "$status" and "status" are
// preferred. values[i] is the constant of variant i. The name is "" if there is
// no such property.
func Discriminator(variants []any) (name string, values []any) {
	if len(variants) < 2 {
		return "", nil
	}
	first, _ := variants[0].(map[string]any)
	names := propertyNames(first)
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		if values := constants(variants, name); values != nil {
			return name, values
		}
	}
	return "", nil
}

func rank(name string) int {
	switch name {
	case "$status":
		return 0
	case "status":
		return 1
	}
	return 2
}

// constants returns the constant that each variant gives a property, nil unless
// all give one and all are different.
func constants(variants []any, name string) []any {
	var values []any
	for _, v := range variants {
		c, ok := constant(valueAt(v, "properties", name))
		if !ok || slices.ContainsFunc(values, func(have any) bool { return equal(have, c) }) {
			return nil
		}
		values = append(values, c)
	}
	return values
}

func constant(schema any) (any, bool) {
	m, _ := schema.(map[string]any)
	c, ok := m["const"]
	if enum, isList := m["enum"].([]any); !ok && isList && len(enum) == 1 {
		c, ok = enum[0], true
	}
	switch c.(type) {
	case map[string]any, []any:
		return nil, false
	}
	return c, ok
}
