package jsonschema

import (
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/jsonschema/internal/dialect"
)

func quickType(arg any) quick {
	names, several := arg.([]any)
	if !several {
		names = []any{arg}
	}
	return func(v any) answer {
		for _, name := range names {
			if name, ok := name.(string); ok && isType(v, name) {
				return fits
			}
		}
		return fails
	}
}

func isType(v any, name string) bool {
	switch v := v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case nil:
		return name == "null"
	case int64:
		return name == "integer" || name == "number"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}

func quickEnum(values []any) quick {
	if !isPlain(values, 0) {
		return nil
	}
	return func(v any) answer {
		for _, want := range values {
			if dialect.Equal(v, want) {
				return fits
			}
		}
		return fails
	}
}

// quickNumber compares floats, which is exact for plain numbers.
func quickNumber(keyword string, arg any) quick {
	limit, ok := dialect.Float(arg)
	if !ok || !isPlain(arg, 0) {
		return nil
	}
	return func(v any) answer {
		n, isNumber := dialect.Float(v)
		if !isNumber {
			return fits
		}
		switch keyword {
		case "minimum":
			return sure(n >= limit)
		case "maximum":
			return sure(n <= limit)
		case "exclusiveMinimum":
			return sure(n > limit)
		case "exclusiveMaximum":
			return sure(n < limit)
		}
		return sure(dialect.IsMultiple(n, limit))
	}
}

// quickLength counts code points, items or properties.
func quickLength(keyword string, arg any) quick {
	limit, ok := dialect.Float(arg)
	if !ok {
		return nil
	}
	least := strings.HasPrefix(keyword, "min")
	return func(v any) answer {
		n := 0
		switch v := v.(type) {
		case string:
			if n = utf8.RuneCountInString(v); !strings.HasSuffix(keyword, "Length") {
				return fits
			}
		case []any:
			if n = len(v); !strings.HasSuffix(keyword, "Items") {
				return fits
			}
		case map[string]any:
			if n = len(v); !strings.HasSuffix(keyword, "Properties") {
				return fits
			}
		default:
			return fits
		}
		if least {
			return sure(n >= int(limit))
		}
		return sure(n <= int(limit))
	}
}

// quickPattern compiles when the first text comes.
func quickPattern(arg any) quick {
	pattern, ok := arg.(string)
	if !ok {
		return nil
	}
	matches := matcher(pattern)
	return func(v any) answer {
		text, ok := v.(string)
		if !ok {
			return fits
		}
		return matches(text)
	}
}

// matcher tells whether a text matches; the library has the same engine.
func matcher(pattern string) func(string) answer {
	compiled := sync.OnceValues(func() (*regexp.Regexp, error) { return regexp.Compile(pattern) })
	return func(text string) answer {
		re, err := compiled()
		if err != nil {
			return unsure
		}
		return sure(re.MatchString(text))
	}
}

// fewItems is up to how many items are compared with each other.
const fewItems = 64

func quickUnique(arg any) quick {
	if unique, ok := arg.(bool); !ok || !unique {
		return func(any) answer { return sure(ok) }
	}
	return func(v any) answer {
		list, _ := v.([]any)
		if len(list) > fewItems {
			return unsure
		}
		for i, item := range list {
			for _, other := range list[:i] {
				if dialect.Equal(item, other) {
					return fails
				}
			}
		}
		return fits
	}
}

func quickRequired(arg any) quick {
	list, _ := arg.([]any)
	names := make([]string, len(list))
	for i, item := range list {
		name, ok := item.(string)
		if !ok {
			return nil
		}
		names[i] = name
	}
	return func(v any) answer {
		m, ok := v.(map[string]any)
		if !ok {
			return fits
		}
		for _, name := range names {
			if _, there := m[name]; !there {
				return fails
			}
		}
		return fits
	}
}
