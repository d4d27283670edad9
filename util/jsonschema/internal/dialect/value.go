package dialect

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Float is the value of a number, and whether it is one.
func Float(v any) (float64, bool) {
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

// IsMultiple divides floats, as the original does: 0.3 is no multiple of 0.1.
func IsMultiple(n, of float64) bool {
	q := n / of
	return q == math.Trunc(q) && !math.IsInf(q, 0)
}

// Equal compares two JSON values: numbers by what they are worth, whatever Go
// type they have.
func Equal(a, b any) bool {
	x, isNumber := Float(a)
	y, isNumber2 := Float(b)
	if isNumber || isNumber2 {
		return isNumber && isNumber2 && x == y
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// Key is a text that equal values have in common, and only these.
func Key(v any) string {
	b, err := json.Marshal(plain(v))
	if err != nil {
		return fmt.Sprintf("%T %v", v, v)
	}
	return string(b)
}

// plain makes a float of each number; there is no negative zero.
func plain(v any) any {
	if f, ok := Float(v); ok {
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

// Show writes a value as JSON, cut to what fits into a message.
func Show(v any) string {
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

// PropertyNames lists the properties that a schema names, sorted.
func PropertyNames(schema map[string]any) []string {
	properties, _ := schema["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Escape makes a name a token of a JSON pointer.
func Escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// Pointer joins tokens to a JSON pointer.
func Pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + Escape(t))
	}
	return b.String()
}

// At follows tokens into a value; nil if there is nothing.
func At(v any, tokens ...string) any {
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
