package jsonata

import (
	"reflect"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
)

// Truthy tells whether a value counts as true where a condition is asked for,
// as $boolean does: a text that is not empty, a number but 0, an object with
// members, an array with an item that counts as true. What is not defined
// counts as false.
func Truthy(v any, defined bool) bool {
	if !defined {
		return false
	}
	l, ok := listOf(v)
	if !ok {
		return truthyScalar(v)
	}
	for i := range l.len() {
		if Truthy(l.item(i), true) {
			return true
		}
	}
	return false
}

// truthyScalar is Truthy for everything but arrays.
func truthyScalar(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case string:
		return v != ""
	case map[string]any:
		return len(v) > 0
	case *Object:
		return v.Len() > 0
	}
	f, _ := jsnumber.Float(v)
	return f != 0
}

// truthy is Truthy within the bounds: evaluation can make arrays that share
// their parts and are huge when walked.
func (s site) truthy(v any, depth int) (bool, error) {
	l, ok := listOf(v)
	if !ok {
		if f, ok := jsnumber.Float(v); ok && !isFinite(f) {
			return false, s.infinite(f)
		}
		return truthyScalar(v), nil
	}
	if err := s.deep(depth); err != nil {
		return false, err
	}
	for i := range l.len() {
		if err := s.spend(1); err != nil {
			return false, err
		}
		if holds, err := s.truthy(l.item(i), depth+1); err != nil || holds {
			return holds, err
		}
	}
	return false, nil
}

// equal compares by content; the order of an object's members does not matter.
func (s site) equal(a, b any, depth int) (bool, error) {
	if err := s.deep(depth); err != nil {
		return false, err
	}
	if err := s.spend(1); err != nil {
		return false, err
	}
	switch kind := kindOf(a); {
	case kind != kindOf(b):
		return false, nil
	case kind == 'a':
		return s.equalLists(a, b, depth)
	case kind == 'o':
		return s.equalObjects(a, b, depth)
	}
	return identical(a, b), nil
}

func (s site) equalLists(a, b any, depth int) (bool, error) {
	x, y := asList(a), asList(b)
	if x.len() != y.len() {
		return false, nil
	}
	for i := range x.len() {
		if same, err := s.equal(x.item(i), y.item(i), depth+1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (s site) equalObjects(a, b any, depth int) (bool, error) {
	keys, _ := keysOf(a)
	if others, _ := keysOf(b); len(keys) != len(others) {
		return false, nil
	}
	for _, k := range keys {
		y := member(b, k)
		if isUndefined(y) {
			return false, nil
		}
		if same, err := s.equal(member(a, k), y, depth+1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// identical is JavaScript's ===: arrays and objects are only identical to
// themselves.
func identical(a, b any) bool {
	if x, ok := jsnumber.Float(a); ok {
		y, ok := jsnumber.Float(b)
		return ok && x == y
	}
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case string:
		y, ok := b.(string)
		return ok && x == y
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && len(x) > 0 && &x[0] == &y[0]
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
	case *list:
		y, ok := b.(*list)
		return ok && x == y
	case *Object:
		y, ok := b.(*Object)
		return ok && x == y
	case *function:
		y, ok := b.(*function)
		return ok && x == y
	}
	return false
}
