package jsonata

import (
	"math"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// maxRange is JSONata's own bound of a range.
const maxRange = 10_000_000

// array evaluates […]: arrays among the items are flattened, but those that are
// written as arrays are not.
func (e *evaluator) array(n *syntax.Array, in any, env *frame) (any, error) {
	s := e.at(n.At, "[")
	out := &list{whole: n.Whole, vals: []any{}}
	for _, item := range n.Items {
		v, err := e.eval(item, in, env)
		if err != nil {
			return nil, err
		}
		if isUndefined(v) {
			continue
		}
		l, ok := listOf(v)
		_, written := item.(*syntax.Array)
		switch {
		case !ok || written:
			err = s.push(out, v)
		case l.vals == nil && len(n.Items) == 1: // a range by itself stays one
			return &list{whole: n.Whole, from: l.from, span: l.span}, nil
		default:
			err = s.concat(out, l)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// numbers evaluates from..to.
func (e *evaluator) numbers(n *syntax.Range, in any, env *frame) (any, error) {
	s := e.at(n.At, "..")
	left, err := e.eval(n.From, in, env)
	if err != nil {
		return nil, err
	}
	right, err := e.eval(n.To, in, env)
	if err != nil {
		return nil, err
	}
	from, err := s.whole(left, "T2003", "left")
	if err != nil {
		return nil, err
	}
	to, err := s.whole(right, "T2004", "right")
	if err != nil || isUndefined(left) || isUndefined(right) || from > to {
		return undefined{}, err
	}
	size := to - from + 1
	if size > maxRange {
		return nil, s.fail("D2014", "a range has at most %d numbers, not %s", maxRange, jsnumber.Format(size))
	}
	return &list{from: int64(from), span: int64(size), seq: true}, nil
}

// whole reads an end of a range, which may be undefined.
func (s site) whole(v any, code, side string) (float64, error) {
	f, ok := jsnumber.Float(v)
	if !isUndefined(v) && (!ok || f != math.Trunc(f) || math.Abs(f) > 1<<53) {
		return 0, s.failValue(v, code, "the %s side of %q must be a whole number, not %s", side, s.token, describe(v))
	}
	return f, nil
}

// member of a group: the items that have a key, and which pair gave it.
type bucket struct {
	pair  int
	items list
	// alone: the one item so far, which is not an array of one.
	alone any
	many  bool
}

// group evaluates {key: value}: the keys for each item, then each value once
// for all items that have its key.
func (e *evaluator) group(g *syntax.Group, v any, env *frame) (any, error) {
	s := e.at(g.At, "{")
	input := asList(v)
	if input.len() == 0 {
		input = list{vals: []any{undefined{}}}
	}
	var keys []string
	buckets := map[string]*bucket{}
	for i := range input.len() {
		item := input.item(i)
		for number, pair := range g.Pairs {
			key, err := e.key(pair.Key, item, env)
			if err != nil {
				return nil, err
			}
			if key == nil {
				continue
			}
			if buckets[*key] == nil {
				if err := s.spend(stepsPerKey); err != nil {
					return nil, err
				}
				keys = append(keys, *key)
				buckets[*key] = &bucket{pair: number, alone: item}
				continue
			}
			if err := s.addTo(buckets[*key], *key, item, number); err != nil {
				return nil, err
			}
		}
	}
	return e.values(g, keys, buckets, env)
}

// key evaluates a key, nil if there is none for the item.
func (e *evaluator) key(n syntax.Node, item any, env *frame) (*string, error) {
	v, err := e.eval(n, item, env)
	if err != nil || isUndefined(v) {
		return nil, err
	}
	key, ok := v.(string)
	if !ok {
		return nil, e.at(n.Shared().At, "").failValue(v, "T1003", "a key must be a text, not %s", describe(v))
	}
	return &key, nil
}

func (s site) addTo(b *bucket, key string, item any, pair int) error {
	if b.pair != pair {
		err := s.fail("D1009", "two pairs of {…} give the same key %s", syntax.Quote(syntax.Shorten(key, syntax.MaxShown)))
		err.Value = syntax.Quote(syntax.Shorten(key, syntax.MaxShown))
		return err
	}
	if !b.many {
		b.many = true
		if err := s.concat(&b.items, asList(b.alone)); err != nil {
			return err
		}
	}
	return s.concat(&b.items, asList(item))
}

// values evaluates the value of each key.
func (e *evaluator) values(g *syntax.Group, keys []string, buckets map[string]*bucket, env *frame) (any, error) {
	out := &Object{}
	if err := e.grow(g.At, len(keys)); err != nil {
		return nil, err
	}
	if err := e.spend(g.At, stepsPerObject+stepsPerKey*len(keys)); err != nil {
		return nil, err
	}
	for _, key := range keys {
		b := buckets[key]
		context := b.alone
		if b.many {
			context = &b.items
		}
		v, err := e.eval(g.Pairs[b.pair].Value, context, env)
		if err != nil {
			return nil, err
		}
		if !isUndefined(v) {
			out.Set(key, v)
		}
	}
	return out, nil
}
