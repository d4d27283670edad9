package jsonata

import (
	"cmp"
	"math"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// path evaluates the steps in order, each for every item of the previous step's result.
func (e *evaluator) path(n *syntax.Path, in any, env *frame) (any, error) {
	input, ok := listOf(in)
	if _, absolute := n.Steps[0].(*syntax.Variable); absolute || !ok {
		input = list{vals: []any{in}, seq: true}
	}
	var v any = undefined{}
	var err error
	for i, step := range n.Steps {
		sort, sorts := step.(*syntax.Sort)
		switch {
		case i == 0 && syntax.BeginsWhole(step): // the array itself, not one result for each item
			v, err = e.eval(step, &input, env)
		case sorts:
			v, err = e.order(sort, v, env)
		default:
			v, err = e.step(step, input, env, i == len(n.Steps)-1)
		}
		if err != nil {
			return nil, err
		}
		if isUndefined(v) {
			break
		}
		if input = asList(v); input.len() == 0 {
			break
		}
	}
	if n.KeepSingleton {
		v = keepSingleton(v)
	}
	if n.Group != nil {
		return e.group(n.Group, v, env)
	}
	return v, nil
}

// keepSingleton keeps a sequence with one item an array. An array created in the path becomes that item.
func keepSingleton(v any) any {
	l, ok := v.(*list)
	if !ok {
		return v
	}
	if l.whole && !l.seq {
		return &list{vals: []any{l}, seq: true, keep: true}
	}
	kept := *l
	kept.keep = true
	return &kept
}

// step evaluates a step for each item and flattens the results into one sequence. If the last step of a path
// gives a single array, that is the result.
func (e *evaluator) step(n syntax.Node, input list, env *frame, last bool) (any, error) {
	at := e.at(n.Shared().At, "")
	out := &list{seq: true}
	results := 0
	var only any
	for i := range input.len() {
		v, err := e.eval(n, input.item(i), env)
		for _, predicate := range n.Shared().Stages {
			if err != nil {
				return nil, err
			}
			v, err = e.filter(predicate, v, env)
		}
		if err != nil {
			return nil, err
		}
		if isUndefined(v) {
			continue
		}
		results++
		only = v
		if err := at.flatten(out, v); err != nil {
			return nil, err
		}
	}
	if l, ok := listOf(only); last && results == 1 && ok && !l.seq {
		return only, nil
	}
	return out, nil
}

// flatten appends the items of an array to a list, or any other value as one item.
func (s site) flatten(out *list, v any) error {
	l, ok := listOf(v)
	if !ok || l.whole {
		return s.push(out, v)
	}
	return s.concat(out, l)
}

func (s site) push(out *list, v any) error {
	out.vals = append(out.vals, v)
	return s.grow(1)
}

// concat appends all items of one list to another.
func (s site) concat(out *list, l list) error {
	if err := s.grow(l.len()); err != nil {
		return err
	}
	if l.vals != nil {
		out.vals = append(out.vals, l.vals...)
		return nil
	}
	if err := s.spend(l.len()); err != nil {
		return err
	}
	for i := range l.len() {
		out.vals = append(out.vals, l.item(i))
	}
	return nil
}

// field returns the value of a name in an object, or in every object of an array.
func (e *evaluator) field(in any, name string, at int) (any, error) {
	l, ok := listOf(in)
	if !ok {
		return member(in, name), nil
	}
	out := &list{seq: true}
	return out, e.at(at, name).fields(out, l, name, 1)
}

func (s site) fields(out *list, l list, name string, depth int) error {
	if err := cmp.Or(s.deep(depth), s.spend(l.len())); err != nil {
		return err
	}
	for i := range l.len() {
		item := l.item(i)
		if inner, ok := listOf(item); ok {
			if err := s.fields(out, inner, name, depth+1); err != nil {
				return err
			}
			continue
		}
		v := member(item, name)
		if isUndefined(v) {
			continue
		}
		if inner, ok := listOf(v); ok {
			if err := s.concat(out, inner); err != nil {
				return err
			}
			continue
		}
		if err := s.push(out, v); err != nil {
			return err
		}
	}
	return nil
}

// wildcard returns the values of all members and fully flattens arrays among them.
func (e *evaluator) wildcard(in any, at int) (any, error) {
	in = unwrapOuter(in)
	s := e.at(at, "*")
	out := &list{seq: true}
	values, err := s.valuesOf(in)
	if err != nil {
		return nil, err
	}
	for i := range values.len() {
		v := values.item(i)
		if l, ok := listOf(v); ok {
			err = s.flattenAll(out, l, 1)
			out.seq = false // with an array among the values, the result is an array
		} else {
			err = s.push(out, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// valuesOf returns the items of an array or the members of an object.
func (s site) valuesOf(v any) (list, error) {
	if l, ok := listOf(v); ok {
		return l, s.spend(l.len())
	}
	keys, ok := keysOf(v)
	if !ok {
		return list{}, nil
	}
	values := make([]any, len(keys))
	for i, k := range keys {
		values[i] = member(v, k)
	}
	return list{vals: values}, s.spend(len(keys))
}

func (s site) flattenAll(out *list, l list, depth int) error {
	if err := cmp.Or(s.deep(depth), s.spend(l.len())); err != nil {
		return err
	}
	for i := range l.len() {
		item := l.item(i)
		var err error
		if inner, ok := listOf(item); ok {
			err = s.flattenAll(out, inner, depth+1)
		} else {
			err = s.push(out, item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// descendants returns a value and all values inside it, except the arrays themselves.
func (e *evaluator) descendants(in any, at int) (any, error) {
	out := &list{seq: true}
	if isUndefined(in) {
		return in, nil
	}
	if err := e.at(at, "**").descend(out, in, 1); err != nil {
		return nil, err
	}
	if out.len() == 1 {
		return out.item(0), nil // "[]" doesn't turn it into an array
	}
	return out, nil
}

func (s site) descend(out *list, v any, depth int) error {
	if err := s.deep(depth); err != nil {
		return err
	}
	if _, ok := listOf(v); !ok {
		if err := s.push(out, v); err != nil {
			return err
		}
	}
	values, err := s.valuesOf(v)
	if err != nil {
		return err
	}
	for i := range values.len() {
		if err := s.descend(out, values.item(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// filter returns the items for which a predicate holds: its value is a number or an array of numbers that
// contains the item's index, or else is true.
func (e *evaluator) filter(predicate syntax.Node, v any, env *frame) (any, error) {
	input := asList(v)
	if n, ok := predicate.(*syntax.Number); ok {
		return index(input, n.Value), nil
	}
	s := e.at(predicate.Shared().At, "")
	out := &list{seq: true}
	for i := range input.len() {
		item := input.item(i)
		res, err := e.eval(predicate, item, env)
		if err != nil {
			return nil, err
		}
		times, err := s.picks(res, i, input.len())
		if err != nil {
			return nil, err
		}
		for range times {
			if err := s.push(out, item); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// index returns the item at a constant position.
func index(input list, place float64) any {
	i, ok := position64(place, input.len())
	if !ok || isUndefined(input.item(i)) {
		return &list{seq: true}
	}
	if item := input.item(i); kindOf(item) == 'a' {
		return item
	}
	return &list{vals: []any{input.item(i)}, seq: true}
}

// position64 converts a number to an index: rounded down, and counted from the end if negative.
func position64(place float64, length int) (int, bool) {
	place = math.Floor(place)
	if place < 0 {
		place += float64(length)
	}
	if place < 0 || place >= float64(length) || math.IsNaN(place) {
		return 0, false
	}
	return int(place), true
}

// picks returns how often the value of a predicate selects the item at an index.
func (s site) picks(res any, index, length int) (int, error) {
	if f, ok := jsnumber.Float(res); ok {
		if !isFinite(f) {
			return 0, s.infinite(f)
		}
		if i, ok := position64(f, length); ok && i == index {
			return 1, nil
		}
		return 0, nil
	}
	if l, ok := listOf(res); ok {
		times, numbers, err := s.picksAny(l, index, length)
		if err != nil || numbers {
			return times, err
		}
	}
	holds, err := s.truthy(res, 1)
	if holds {
		return 1, err
	}
	return 0, err
}

// picksAny is picks for an array; numbers is false if it contains other values.
func (s site) picksAny(l list, index, length int) (times int, numbers bool, err error) {
	if err := s.spend(l.len()); err != nil {
		return 0, false, err
	}
	for i := range l.len() {
		f, ok := jsnumber.Float(l.item(i))
		if !ok {
			return 0, false, nil
		}
		if j, ok := position64(f, length); ok && j == index {
			times++
		}
	}
	return times, true, nil
}

// order evaluates the path step ^(…).
func (e *evaluator) order(n *syntax.Sort, v any, env *frame) (any, error) {
	s := e.at(n.At, "^")
	v, err := s.sort(v, func(a, b any) (bool, error) { return s.after(n.Terms, a, b, env) })
	for _, predicate := range n.Stages {
		if err != nil {
			return nil, err
		}
		v, err = e.filter(predicate, v, env)
	}
	return v, err
}

// after reports whether a sorts after b by the terms of ^(…). An item without a value sorts last.
func (s site) after(terms []syntax.SortTerm, a, b any, env *frame) (bool, error) {
	for _, t := range terms {
		x, err := s.e.eval(t.By, a, env)
		if err != nil {
			return false, err
		}
		y, err := s.e.eval(t.By, b, env)
		if err != nil {
			return false, err
		}
		if isUndefined(x) || isUndefined(y) {
			if isUndefined(x) && isUndefined(y) {
				continue
			}
			return isUndefined(x), nil
		}
		for _, v := range []any{x, y} {
			if k := kindOf(v); k != 's' && k != 'n' {
				return false, s.fail("T2008", "^(…) sorts by numbers or strings, not by %s", describe(v))
			}
		}
		if kindOf(x) != kindOf(y) {
			return false, s.fail("T2007", "^(…) cannot sort by both %s and %s", describe(x), describe(y))
		}
		if order, err := s.compare(x, y); err != nil || order != 0 {
			return (order > 0) != t.Descending, err
		}
	}
	return false, nil
}

// sort returns an array, stably sorted.
func (s site) sort(v any, after func(a, b any) (bool, error)) (any, error) {
	l := asList(v)
	if l.len() <= 1 {
		return v, nil
	}
	items := &list{}
	if err := s.concat(items, l); err != nil {
		return nil, err
	}
	sorted, err := s.mergeSort(items.vals, after)
	return &list{vals: sorted}, err
}

func (s site) mergeSort(items []any, after func(a, b any) (bool, error)) ([]any, error) {
	if len(items) <= 1 {
		return items, nil
	}
	if err := s.spend(len(items)); err != nil {
		return nil, err
	}
	left, err := s.mergeSort(items[:len(items)/2], after)
	if err != nil {
		return nil, err
	}
	right, err := s.mergeSort(items[len(items)/2:], after)
	if err != nil {
		return nil, err
	}
	merged := make([]any, 0, len(items))
	for len(left) > 0 && len(right) > 0 {
		later, err := after(left[0], right[0])
		if err != nil {
			return nil, err
		}
		from := &left
		if later {
			from = &right
		}
		merged = append(merged, (*from)[0])
		*from = (*from)[1:]
	}
	return append(append(merged, left...), right...), nil
}

// sort implements $sort.
func (c *call) sort() (any, error) {
	f, ok := c.args[1].(*function)
	if ok {
		return c.site.sort(c.args[0], func(a, b any) (bool, error) { return c.test(f, a, b) })
	}
	l := asList(c.args[0])
	if err := c.spend(l.len()); err != nil {
		return nil, err
	}
	for i := range l.len() {
		if k := kindOf(l.item(i)); l.len() > 1 && (k != 's' && k != 'n' || k != kindOf(l.item(0))) {
			return nil, c.fail("D3070", "$sort without a function sorts numbers or strings, not %s",
				describe(l.item(i)))
		}
	}
	return c.site.sort(c.args[0], func(a, b any) (bool, error) {
		order, err := c.compare(a, b)
		return order > 0, err
	})
}
