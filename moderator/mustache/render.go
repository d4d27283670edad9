package mustache

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/util/suggest"
)

// renderer renders a template over a stack of values, innermost last.
type renderer struct {
	out   strings.Builder
	stack []any
	work  int
	spans []Span
}

// Span is the byte range of a value in the output.
type Span struct{ From, To int }

// Render renders the template over a stack of JSON values. A name is looked up from the last value to the
// first; the first value with the whole path wins. Errors are *[MissingError] and [ErrTooLarge].
func (t *Template) Render(stack ...any) (string, error) {
	text, _, err := t.RenderSpans(stack...)
	return text, err
}

// RenderSpans is like Render and also returns the ranges of the output that are values. All other text comes
// from the template.
func (t *Template) RenderSpans(stack ...any) (string, []Span, error) {
	if len(stack) == 0 {
		stack = []any{nil}
	}
	r := &renderer{stack: append(make([]any, 0, len(stack)+4), stack...)}
	if err := r.nodes(t.nodes); err != nil {
		return "", nil, err
	}
	return r.out.String(), r.spans, nil
}

// Value returns the value of a template that consists of a single variable. ok is false for any other
// template and for a missing value.
func (t *Template) Value(stack ...any) (value any, ok bool) {
	if len(t.nodes) != 1 || t.nodes[0].tag == nil || t.nodes[0].tag.Kind != Variable ||
		t.nodes[0].tag.Join != nil {
		return nil, false
	}
	r := &renderer{stack: stack}
	return r.find(t.nodes[0].tag.Path)
}

func (r *renderer) nodes(nodes []node) error {
	// An empty body counts as well, because nested sections can loop without output.
	if r.work += 1 + len(nodes); r.work > maxWork {
		return ErrTooLarge
	}
	for _, n := range nodes {
		if err := r.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) node(n node) error {
	if n.tag == nil {
		return r.write(n.text)
	}
	value, found := r.find(n.tag.Path)
	switch n.tag.Kind {
	case Section:
		return r.section(value, n.body)
	case Inverted:
		if truthy(value) {
			return nil
		}
		return r.nodes(n.body)
	}
	if !found {
		return r.missing(n.tag)
	}
	from := r.out.Len()
	err := r.printJoined(value, n.tag.Join)
	if to := r.out.Len(); to > from {
		r.spans = append(r.spans, Span{from, to})
	}
	return err
}

// section renders the body once for each item of a list, and once for any other value except false, 0, "" and
// null.
func (r *renderer) section(value any, body []node) error {
	if !truthy(value) {
		return nil
	}
	items, isList := value.([]any)
	if !isList {
		if value == true { // true has no fields: names keep their meaning
			return r.nodes(body)
		}
		items = []any{value}
	}
	for _, item := range items {
		r.stack = append(r.stack, item)
		err := r.nodes(body)
		r.stack = r.stack[:len(r.stack)-1]
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) write(text string) error {
	if r.out.Len()+len(text) > maxOutput {
		return ErrTooLarge
	}
	r.out.WriteString(text)
	return nil
}

// find looks up a path. An empty path is the innermost value itself.
func (r *renderer) find(path []string) (any, bool) {
	for i := len(r.stack) - 1; i >= 0; i-- {
		if value, depth := walk(r.stack[i], path); depth == len(path) {
			return value, true
		}
	}
	return nil, false
}

// walk follows a path into a value as far as possible, and returns the number of names resolved.
func walk(value any, path []string) (any, int) {
	for i, name := range path {
		// Only name.length refers to the length of a string: a bare {{length}} in a section over a string
		// refers to a field of a surrounding value.
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

// member returns a field of an object, an item of a list, or a length.
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

// utf16Len returns a string's length in JavaScript.
func utf16Len(s string) int64 {
	n := int64(0)
	for _, c := range s {
		n += int64(utf16.RuneLen(c))
	}
	return n
}

// truthy reports whether a section is rendered. An empty list is false, because a section over it has no
// output.
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

// missing returns the error for a missing variable, with the names that exist where the lookup got farthest.
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

// printJoined is print with a custom separator for list items.
func (r *renderer) printJoined(value any, separator *string) error {
	if list, isList := value.([]any); isList && separator != nil {
		return r.printList(list, *separator, 0)
	}
	return r.print(value, 0)
}

// print formats a value as JavaScript does, except that objects print as JSON.
func (r *renderer) print(value any, depth int) error {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return r.write(v)
	case []any:
		return r.printList(v, ",", depth)
	}
	return r.json(value, depth)
}

// printList joins the items and flattens nested lists.
func (r *renderer) printList(items []any, separator string, depth int) error {
	if depth > maxValue {
		return ErrTooLarge
	}
	for i, item := range items {
		if i > 0 {
			if err := r.write(separator); err != nil {
				return err
			}
		}
		if err := r.print(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// json formats a value as JSON with sorted keys.
func (r *renderer) json(value any, depth int) error {
	if depth > maxValue {
		return ErrTooLarge
	}
	switch v := value.(type) {
	case nil:
		return r.write("null")
	case bool:
		return r.write(strconv.FormatBool(v))
	case string:
		return r.write(quoteJSON(v))
	case []any:
		return r.jsonGroup('[', ']', len(v), func(i int) error { return r.json(v[i], depth+1) })
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		return r.jsonGroup('{', '}', len(keys), func(i int) error {
			if err := r.write(quoteJSON(keys[i]) + ":"); err != nil {
				return err
			}
			return r.json(v[keys[i]], depth+1)
		})
	}
	return r.write(formatNumber(value))
}

func (r *renderer) jsonGroup(open, closing byte, n int, item func(i int) error) error {
	for i := range n {
		separator := ","
		if i == 0 {
			separator = string(open)
		}
		if err := r.write(separator); err != nil {
			return err
		}
		if err := item(i); err != nil {
			return err
		}
	}
	if n == 0 {
		return r.write(string([]byte{open, closing}))
	}
	return r.write(string(closing))
}

func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // encoding a string can't fail
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// formatNumber formats a number as JavaScript does.
func formatNumber(value any) string {
	switch v := value.(type) {
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	}
	f, isNumber := jsnumber.Float(value)
	if !isNumber {
		return fmt.Sprint(value)
	}
	return jsnumber.Format(f)
}
