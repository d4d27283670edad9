package jsonschema

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkValue finds what JSON cannot say, before the library stumbles over it.
func checkValue(v any) *Problem {
	values := 0
	return measure(v, "", 0, &values)
}

// measure walks a value, counts what it holds, and reports what is no JSON
// value or nested too deep.
func measure(v any, path string, depth int, values *int) *Problem {
	*values++
	if depth > maxDepth {
		return &Problem{Message: fmt.Sprintf("nested deeper than %d", maxDepth)}
	}
	switch v := v.(type) {
	case nil, bool, string:
		return nil
	case map[string]any:
		for name, item := range v {
			if p := measure(item, path+"/"+escape(name), depth+1, values); p != nil {
				return p
			}
		}
		return nil
	case []any:
		for i, item := range v {
			if p := measure(item, path+"/"+strconv.Itoa(i), depth+1, values); p != nil {
				return p
			}
		}
		return nil
	}
	if f, ok := float(v); !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return &Problem{path, fmt.Sprintf("is not a JSON value (%T %v)", v, v)}
	}
	return nil
}

// float is the value of a number.
func float(v any) (float64, bool) {
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

// escape makes a name a token of a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
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

// pointer joins tokens to a JSON pointer.
func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + escape(t))
	}
	return b.String()
}

// at follows tokens into a value; nil if there is nothing.
func at(v any, tokens []string) any {
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

// sorted sorts problems and drops those that are there twice; nil if there are
// none.
func sorted(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return slices.Compact(problems)
}
