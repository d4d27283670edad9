package mustache

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/util/suggest"
)

// find looks a path up. The empty path is the innermost value itself.
func (r *renderer) find(path []string) (any, bool) {
	for i := len(r.stack) - 1; i >= 0; i-- {
		if value, depth := walk(r.stack[i], path); depth == len(path) {
			return value, true
		}
	}
	return nil, false
}

// walk follows a path into a value as far as it exists, and says how far that
// was.
func walk(value any, path []string) (any, int) {
	for i, name := range path {
		// The length of a string is reachable as name.length only: a bare
		// {{length}} inside a section over a string means a field around it.
		if _, isString := value.(string); isString && i == 0 {
			return value, 0
		}
		next, ok := member(value, name)
		if !ok {
			return value, i
		}
		value = next
	}
	return value, len(path)
}

// member is a field of an object, an item of a list, or a length.
func member(value any, name string) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		field, ok := v[name]
		return field, ok
	case []any:
		if name == "length" {
			return int64(len(v)), true
		}
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != name {
			return nil, false
		}
		return v[i], true
	case string:
		if name == "length" {
			return utf16Len(v), true
		}
	}
	return nil, false
}

// utf16Len is the length that JavaScript gives a string.
func utf16Len(s string) int64 {
	n := int64(0)
	for _, c := range s {
		n += int64(utf16.RuneLen(c))
	}
	return n
}

// truthy is what decides a section. An empty list is false here, because a
// section over it renders nothing.
func truthy(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	}
	number, isNumber := jsnumber.Float(value)
	return !isNumber || number != 0 && number == number
}

// missing explains a variable that was not found: at the value that the path
// reached farthest, what is there instead?
func (r *renderer) missing(tag *Tag) error {
	reached, depth := []any{}, 0
	for i := len(r.stack) - 1; i >= 0; i-- {
		value, d := walk(r.stack[i], tag.Path)
		if d > depth {
			reached, depth = nil, d
		}
		if d == depth {
			reached = append(reached, value)
		}
	}
	names := map[string]bool{}
	for _, value := range reached {
		if object, ok := value.(map[string]any); ok {
			for name := range object {
				names[name] = true
			}
		}
	}
	known := slices.Sorted(maps.Keys(names))
	prefix := strings.Join(append(slices.Clone(tag.Path[:depth]), ""), ".")
	return &MissingError{
		Name: tag.Name, Line: tag.Line, Column: tag.Column,
		Nearest: prefixed(prefix, suggest.Nearest(tag.Path[depth], known, 3)),
		Known:   prefixed(prefix, known[:min(len(known), 10)]),
	}
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return out
}
