package jsonata

import "github.com/united-workforce/uwf/moderator/jsonata/syntax"

// order evaluates the step ^(…) of a path.
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

// after tells whether an item comes after another by the terms of ^(…); an item
// without a value comes last.
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
				return false, s.failValue(v, "T2008", "^(…) sorts by numbers or texts, not by %s", describe(v))
			}
		}
		if kindOf(x) != kindOf(y) {
			return false, s.failValue(x, "T2007", "^(…) sorts by numbers, or by texts, not by %s and %s", describe(x), describe(y))
		}
		if order, err := s.compare(x, y); err != nil || order != 0 {
			return (order > 0) != t.Descending, err
		}
	}
	return false, nil
}

// sort sorts an array and keeps the order of equal items.
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

// sort is $sort.
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
			return nil, c.failValue(l.item(i), "D3070", "$sort without a function sorts numbers, or texts, not %s", describe(l.item(i)))
		}
	}
	return c.site.sort(c.args[0], func(a, b any) (bool, error) {
		order, err := c.compare(a, b)
		return order > 0, err
	})
}
