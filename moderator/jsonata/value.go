package jsonata

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// undefined is the value of anything that doesn't exist. It differs from null.
type undefined struct{}

func isUndefined(v any) bool {
	_, ok := v.(undefined)
	return ok
}

// list is an array created by evaluation. Arrays of the input stay []any; listOf handles both.
type list struct {
	vals []any
	// A range isn't expanded: it has span numbers starting at from, and vals is nil.
	from, span int64

	// seq marks a sequence, the result of a path: an empty one is undefined, and a single item stands for
	// itself unless keep is set.
	seq, keep bool
	// whole means that surrounding paths don't flatten it.
	whole bool
	// outer wraps an array that is the whole input, which makes it a single context.
	outer bool
}

func listOf(v any) (list, bool) {
	switch v := v.(type) {
	case []any:
		return list{vals: v}, true
	case *list:
		return *v, true
	}
	return list{}, false
}

// asList wraps a value in a list unless it is one.
func asList(v any) list {
	if l, ok := listOf(v); ok {
		return l
	}
	return list{vals: []any{v}}
}

func (l list) len() int { return len(l.vals) + int(l.span) }

func (l list) item(i int) any {
	if l.vals == nil {
		return float64(l.from + int64(i))
	}
	return l.vals[i]
}

// unwrap converts a sequence to its value.
func unwrap(v any, keep bool) any {
	l, ok := v.(*list)
	if !ok || !l.seq {
		return v
	}
	switch keep = keep || l.keep; {
	case l.len() == 0:
		return undefined{}
	case keep != l.keep:
		kept := *l
		kept.keep = true
		return &kept
	case l.len() == 1 && !keep:
		return l.item(0)
	}
	return v
}

// unwrapOuter returns the input itself when a function gets it as the context.
func unwrapOuter(v any) any {
	if l, ok := v.(*list); ok && l.outer {
		return l.item(0)
	}
	return v
}

func isFinite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }

// kindOf returns the letter of a value's kind in signatures: m undefined, l null, b boolean, n number, s
// string, a array, o object, f function, u not a JSON value.
func kindOf(v any) byte {
	switch v.(type) {
	case undefined:
		return 'm'
	case nil:
		return 'l'
	case bool:
		return 'b'
	case string:
		return 's'
	case []any, *list:
		return 'a'
	case map[string]any, *Object:
		return 'o'
	case *function:
		return 'f'
	case float64, int64, int, uint64, json.Number:
		return 'n'
	}
	return 'u'
}

func kindName(kind byte) string {
	switch kind {
	case 'l':
		return "null"
	case 'b':
		return "boolean"
	case 'n':
		return "number"
	case 's':
		return "string"
	case 'a':
		return "array"
	case 'o':
		return "object"
	case 'f':
		return "function"
	case 'm':
		return "nothing"
	}
	return "unknown"
}

func withArticle(noun string) string {
	switch noun[0] {
	case 'a', 'o':
		return "an " + noun
	}
	return "a " + noun
}

// member returns a field of an object; undefined if v isn't an object or lacks it.
func member(v any, key string) any {
	var value any
	var ok bool
	switch o := v.(type) {
	case map[string]any:
		value, ok = o[key]
	case *Object:
		value, ok = o.Get(key)
	}
	if !ok {
		return undefined{}
	}
	return value
}

// keysOf returns an object's keys in visiting order; ok is false if v isn't an object.
func keysOf(v any) (keys []string, ok bool) {
	switch o := v.(type) {
	case map[string]any:
		return slices.Sorted(maps.Keys(o)), true
	case *Object:
		return o.keys, true
	}
	return nil, false
}

// describe formats a value for a message, shortened.
func describe(v any) string {
	switch v := v.(type) {
	case undefined:
		return "nothing"
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return "string " + syntax.Quote(syntax.Shorten(v, syntax.MaxShown))
	case *function:
		if v.name == "" {
			return "a function"
		}
		return "the function " + v.name
	}
	if f, ok := jsnumber.Float(v); ok {
		return jsnumber.Format(f)
	}
	if l, ok := listOf(v); ok {
		return fmt.Sprintf("an array of %d", l.len())
	}
	if _, ok := keysOf(v); ok {
		return "an object"
	}
	return fmt.Sprintf("a Go %T, which is not a JSON value", v)
}

// Object is a JSON object with ordered members, which are visited in that order; the members of a map are
// visited in the order of their keys. The zero value is empty.
type Object struct {
	keys   []string
	values map[string]any
}

// Set adds or replaces a member.
func (o *Object) Set(key string, value any) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// Get returns the value of a member.
func (o *Object) Get(key string) (value any, ok bool) {
	value, ok = o.values[key]
	return value, ok
}

// Keys returns the keys in order. The caller must not modify the slice.
func (o *Object) Keys() []string { return o.keys }

// Len returns the number of members.
func (o *Object) Len() int { return len(o.keys) }

// export converts a value to JSON values in Go. Parts of the input stay unchanged.
func (e *evaluator) export(v any, at, depth int) (any, error) {
	if err := e.deep(at, depth); err != nil {
		return nil, err
	}
	s := e.at(at, "")
	switch v := v.(type) {
	case undefined:
		return nil, nil
	case float64:
		return s.exportNumber(v)
	case *list:
		return s.exportList(*v, depth)
	case *Object:
		return s.exportObject(v, depth)
	case *function:
		err := s.fail(syntax.CodeFunctionResult, "the result is %s itself, not its return value", describe(v))
		if v.name != "" {
			err.Token, err.Hint = v.name, "write "+v.name+"(…)"
		}
		return nil, err
	}
	return v, nil
}

// exportNumber returns an exact integer as an int64.
func (s site) exportNumber(f float64) (any, error) {
	switch {
	case !isFinite(f):
		return nil, s.infinite(f)
	case f == math.Trunc(f) && math.Abs(f) <= 1<<53:
		return int64(f), nil
	}
	return f, nil
}

func (s site) exportList(l list, depth int) (any, error) {
	if err := s.grow(l.len()); err != nil {
		return nil, err
	}
	if err := s.spend(l.len()); err != nil {
		return nil, err
	}
	out := make([]any, l.len())
	for i := range out {
		v, err := s.e.export(l.item(i), s.where, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (s site) exportObject(o *Object, depth int) (any, error) {
	if err := s.grow(o.Len()); err != nil {
		return nil, err
	}
	if err := s.spend(stepsPerObject + o.Len()); err != nil {
		return nil, err
	}
	out := make(map[string]any, o.Len())
	for _, key := range o.keys {
		if f, ok := o.values[key].(*function); ok && f.hidden {
			continue
		}
		v, err := s.e.export(o.values[key], s.where, depth+1)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}
