package jsonata

import "github.com/united-workforce/uwf/moderator/jsonata/syntax"

// path evaluates the steps one after the other, each for every item that the
// step before it gave.
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
		case i == 0 && syntax.BeginsWhole(step): // an array by itself, not one for each item
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

// keepSingleton keeps a sequence of one an array. An array that was built in
// the path becomes the one item.
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

// step evaluates a step for each item and flattens what comes out into one
// sequence. If the last step of a path gives one array, that is the result.
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

// flatten adds the items of an array to a list, and anything else as one item.
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

// concat adds all items of a list to another.
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

// field looks a name up in an object, or in every object of an array.
func (e *evaluator) field(in any, name string, at int) (any, error) {
	l, ok := listOf(in)
	if !ok {
		return member(in, name), nil
	}
	out := &list{seq: true}
	return out, e.at(at, name).fields(out, l, name, 1)
}

func (s site) fields(out *list, l list, name string, depth int) error {
	if err := s.deep(depth); err != nil {
		return err
	}
	if err := s.spend(l.len()); err != nil {
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

// wildcard gives the values of all members; arrays among them are flattened
// all the way down.
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
			out.seq = false // one array among the values, and the result is an array
		} else {
			err = s.push(out, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// valuesOf are the items of an array or the members of an object.
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
	if err := s.deep(depth); err != nil {
		return err
	}
	if err := s.spend(l.len()); err != nil {
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

// descendants gives a value and all values inside it; of arrays only the items.
func (e *evaluator) descendants(in any, at int) (any, error) {
	out := &list{seq: true}
	if isUndefined(in) {
		return in, nil
	}
	if err := e.at(at, "**").descend(out, in, 1); err != nil {
		return nil, err
	}
	if out.len() == 1 {
		return out.item(0), nil // "[]" does not make an array of it
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
