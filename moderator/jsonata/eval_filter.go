package jsonata

import (
	"math"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// filter keeps the items for which a predicate holds: its value is a number or
// an array of numbers that hold the item's index, or else is true of the item.
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

// index is the item at a fixed place.
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

// position64 is the index that a number means: rounded down, and from the end
// if it is negative.
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

// picks tells how often the value of a predicate picks the item at an index.
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

// picksAny does the same for an array; numbers is false if it holds anything
// else.
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
