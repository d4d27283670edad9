package jsonschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
)

// toFloat is the value of a number, and whether it is one.
func toFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

// isMultiple divides floats, as the original does: 0.3 is no multiple of 0.1.
func isMultiple(n, of float64) bool {
	q := n / of
	return q == math.Trunc(q) && !math.IsInf(q, 0)
}

// equal compares two JSON values: numbers by what they are worth, whatever Go
// type they have.
func equal(a, b any) bool {
	x, isNumber := toFloat(a)
	y, isNumber2 := toFloat(b)
	if isNumber || isNumber2 {
		return isNumber && isNumber2 && x == y
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// keyOf is a text that equal values have in common, and only these.
func keyOf(v any) string {
	b, err := json.Marshal(plain(v))
	if err != nil {
		return fmt.Sprintf("%T %v", v, v)
	}
	return string(b)
}

// plain makes a float of each number; there is no negative zero.
func plain(v any) any {
	if f, ok := toFloat(v); ok {
		return f + 0
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			out[name] = plain(item)
		}
		return out
	}
	return v
}

// show writes a value as JSON, cut to what fits into a message.
func show(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("%v", v)
	}
	const limit = 80
	s := strings.TrimSpace(b.String())
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return s
}

// propertyNames lists the properties that a schema names, sorted.
func propertyNames(schema map[string]any) []string {
	properties, _ := schema["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// escape makes a name a token of a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// pointer joins tokens to a JSON pointer.
func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + escape(t))
	}
	return b.String()
}

// valueAt follows tokens into a value; nil if there is nothing.
func valueAt(v any, tokens ...string) any {
	for _, t := range tokens {
		switch c := v.(type) {
		case map[string]any:
			v = c[t]
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// multipleOf is the name under which the library sees that keyword. Its own one
// reckons in decimal fractions; the original's divides floats, and a value must
// not be valid here and invalid there.
const multipleOf = "x-multipleOf"

type multipleOfCompiler struct{}

func (multipleOfCompiler) Compile(_ lib.CompilerContext, m map[string]any) (lib.ExtSchema, error) {
	n, ok := toFloat(m[multipleOf])
	if !ok {
		return nil, nil
	}
	return multipleOfSchema(n), nil
}

type multipleOfSchema float64

func (d multipleOfSchema) Validate(ctx lib.ValidationContext, v any) error {
	f, ok := toFloat(v)
	if !ok {
		return nil
	}
	if isMultiple(f, float64(d)) {
		return nil
	}
	return ctx.Error("multipleOf", "not a multiple")
}

// rename returns a schema with its multipleOf under the name above. It shares
// what it does not change.
func rename(schema any) any {
	m, ok := schema.(map[string]any)
	if !ok {
		return schema // additionalProperties: a boolean
	}
	out := make(map[string]any, len(m))
	for name, v := range m {
		switch keywords[name] {
		case takesPositive:
			name = multipleOf
		case takesSchema, takesSchemaOrBool:
			v = rename(v)
		case takesSchemaList:
			list := v.([]any) // Check has seen to it
			renamed := make([]any, len(list))
			for i, item := range list {
				renamed[i] = rename(item)
			}
			v = renamed
		case takesSchemaMap, takesPatternMap:
			renamed := map[string]any{}
			for key, item := range v.(map[string]any) {
				renamed[key] = rename(item)
			}
			v = renamed
		}
		out[name] = v
	}
	return out
}
