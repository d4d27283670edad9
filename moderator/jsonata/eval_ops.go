package jsonata

import (
	"cmp"
	"math"
	"reflect"
	"strings"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

func (e *evaluator) logic(n *syntax.Binary, in any, env *frame) (any, error) {
	left, err := e.holds(n.Left, in, env)
	if err != nil || left == (n.Op == "or") {
		return left, err
	}
	return e.holds(n.Right, in, env)
}

// otherwise evaluates "??", which tests whether the left side exists, and "?:", which tests whether it is
// true.
func (e *evaluator) otherwise(n *syntax.Binary, in any, env *frame) (any, error) {
	left, err := e.eval(n.Left, in, env)
	if err != nil {
		return nil, err
	}
	take := !isUndefined(left)
	if n.Op == "?:" {
		if take, err = e.at(n.At, n.Op).truthy(left, 1); err != nil {
			return nil, err
		}
	}
	if take {
		return left, nil
	}
	return e.eval(n.Right, in, env)
}

func (e *evaluator) negate(n *syntax.Negate, in any, env *frame) (any, error) {
	v, err := e.eval(n.Operand, in, env)
	if err != nil || isUndefined(v) {
		return v, err
	}
	f, ok := jsnumber.Float(v)
	if !ok {
		return nil, e.at(n.At, "-").fail("D1002", "only a number can be negated, not %s", describe(v))
	}
	return -f, nil
}

func (e *evaluator) binary(n *syntax.Binary, in any, env *frame) (any, error) {
	switch n.Op {
	case "and", "or":
		return e.logic(n, in, env)
	case "??", "?:":
		return e.otherwise(n, in, env)
	}
	left, err := e.eval(n.Left, in, env)
	if err != nil {
		return nil, err
	}
	right, err := e.eval(n.Right, in, env)
	if err != nil {
		return nil, err
	}
	s := e.at(n.At, n.Op)
	switch n.Op {
	case "=", "!=":
		return s.equality(left, right)
	case "<", "<=", ">", ">=":
		return s.order(left, right)
	case "in":
		return s.includes(left, right)
	case "&":
		return s.join(left, right)
	}
	return s.arithmetic(left, right)
}

func (s site) infinite(f float64) *Error {
	return s.fail("D1001", "%s is not a finite number (division by 0?)", jsnumber.Format(f))
}

// operand returns an operand of a numeric operator.
func (s site) operand(v any, code, side string) (float64, bool, error) {
	if isUndefined(v) {
		return 0, false, nil
	}
	f, ok := jsnumber.Float(v)
	if !ok {
		return 0, false, s.fail(code, "the %s side of %q must be a number, not %s", side, s.token, describe(v))
	}
	if !isFinite(f) {
		return 0, false, s.infinite(f)
	}
	return f, true, nil
}

func (s site) arithmetic(left, right any) (any, error) {
	a, okA, err := s.operand(left, "T2001", "left")
	if err != nil {
		return nil, err
	}
	b, okB, err := s.operand(right, "T2002", "right")
	if err != nil || !okA || !okB {
		return undefined{}, err
	}
	switch s.token {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/":
		return a / b, nil
	}
	return math.Mod(a, b), nil
}

func (s site) equality(left, right any) (any, error) {
	if isUndefined(left) || isUndefined(right) {
		return false, nil
	}
	for _, v := range []any{left, right} {
		if f, ok := jsnumber.Float(v); ok && !isFinite(f) {
			return nil, s.infinite(f)
		}
	}
	same, err := s.equal(left, right, 1)
	return same == (s.token == "="), err
}

func (s site) order(left, right any) (any, error) {
	l, r := kindOf(left), kindOf(right)
	for _, v := range []any{left, right} {
		if k := kindOf(v); k != 'm' && k != 's' && k != 'n' {
			return nil, s.fail("T2010", "%q compares numbers or strings, not %s", s.token, describe(v))
		}
	}
	if l == 'm' || r == 'm' {
		return undefined{}, nil
	}
	if l != r {
		return nil, s.fail("T2009", "%q cannot compare %s with %s", s.token, describe(left), describe(right))
	}
	order, err := s.compare(left, right)
	switch s.token {
	case "<":
		return order < 0, err
	case "<=":
		return order <= 0, err
	case ">":
		return order > 0, err
	}
	return order >= 0, err
}

// compare compares two texts or two numbers.
func (s site) compare(left, right any) (int, error) {
	if text, ok := left.(string); ok {
		return strings.Compare(text, right.(string)), nil
	}
	a, _, err := s.operand(left, "T2010", "left")
	if err != nil {
		return 0, err
	}
	b, _, err := s.operand(right, "T2010", "right")
	return cmp.Compare(a, b), err
}

// includes reports whether an array contains a value. As in JavaScript, arrays and objects compare by
// identity.
func (s site) includes(left, right any) (any, error) {
	if isUndefined(left) || isUndefined(right) {
		return false, nil
	}
	l := asList(right)
	if err := s.spend(l.len()); err != nil {
		return nil, err
	}
	for i := range l.len() {
		if identical(left, l.item(i)) {
			return true, nil
		}
	}
	return false, nil
}

// join evaluates "&".
func (s site) join(left, right any) (any, error) {
	a, err := s.text(left, "")
	if err != nil {
		return nil, err
	}
	b, err := s.text(right, "")
	if err != nil {
		return nil, err
	}
	return a + b, s.write(len(a) + len(b))
}

// text formats a value as $string does; undefined is empty. indent is the indentation of one level, "" for a
// single line.
func (s site) text(v any, indent string) (string, error) {
	switch v := unwrapOuter(v).(type) {
	case undefined, *function:
		return "", nil
	case string:
		return v, nil
	default:
		if f, ok := jsnumber.Float(v); ok && !isFinite(f) {
			return "", s.fail("D3001", "%s cannot be converted to a string", jsnumber.Format(f))
		}
		text, err := s.json(v, indent, false)
		return string(text), err
	}
}

// Truthy reports whether a value counts as true, as $boolean does: a non-empty text, a number other than 0,
// an object with members, or an array with an item that counts as true. An undefined value is false.
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

// truthyScalar is Truthy for values other than arrays.
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

// truthy is Truthy within the bounds. Evaluation can create arrays that share their parts and are huge when
// traversed.
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

// equal compares by content, regardless of the order of an object's members.
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

// identical is JavaScript's ===: arrays and objects are identical only to themselves.
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
