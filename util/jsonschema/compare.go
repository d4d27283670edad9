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

// toFloat returns the value of a number; false if v isn't one.
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

// isMultiple divides floats, as the original does: 0.3 isn't a multiple of 0.1.
func isMultiple(n, of float64) bool {
	q := n / of
	return q == math.Trunc(q) && !math.IsInf(q, 0)
}

// equal compares two JSON values. Numbers are compared by value, regardless of their Go type.
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

// keyOf returns the same text for equal values, and different texts for others.
func keyOf(v any) string {
	b, err := json.Marshal(plain(v))
	if err != nil {
		return fmt.Sprintf("%T %v", v, v)
	}
	return string(b)
}

// plain converts numbers to floats and negative zero to zero.
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

// show formats a value as JSON, shortened for a message.
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

// propertyNames lists the declared properties of a schema, sorted.
func propertyNames(schema map[string]any) []string {
	properties, _ := schema["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// escape converts a name to a JSON pointer token.
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

// valueAt follows tokens into a value; nil if it doesn't exist.
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

// multipleOf is the name of this keyword inside the library. The library's implementation uses decimal
// fractions, the original's divides floats, and both systems must agree on whether a value is valid.
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

// rename returns a schema with multipleOf renamed. It shares unchanged parts.
func rename(schema any) any {
	m, ok := schema.(map[string]any)
	if !ok {
		return schema // a boolean, for additionalProperties
	}
	out := make(map[string]any, len(m))
	for name, v := range m {
		switch keywords[name] {
		case takesPositive:
			name = multipleOf
		case takesSchema, takesSchemaOrBool:
			v = rename(v)
		case takesSchemaList:
			list := v.([]any) // guaranteed by Check
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
