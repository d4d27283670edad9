package jsonata

import (
	"slices"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// builtins holds the built-in functions: their parameters, in the notation of parseSignature, and their
// implementation. It is read-only.
var builtins = map[string]struct {
	params string
	run    func(*call) (any, error)
}{
	"string":          {"x-b?", (*call).toString},
	"length":          {"s-", (*call).length},
	"substring":       {"s-nn?", (*call).substring},
	"substringBefore": {"s-s", (*call).substringBefore},
	"substringAfter":  {"s-s", (*call).substringAfter},
	"lowercase":       {"s-", (*call).lowercase},
	"uppercase":       {"s-", (*call).uppercase},
	"trim":            {"s-", (*call).trim},
	"pad":             {"s-ns?", (*call).pad},
	"match":           {"s-fn?", (*call).match},
	"contains":        {"s-(sf)", (*call).contains},
	"split":           {"s-(sf)n?", (*call).split},
	"join":            {"a<s>s?", (*call).join},
	"replace":         {"s-(sf)(sf)n?", (*call).replace},

	"number":     {"(nsb)-", (*call).toNumber},
	"abs":        {"n-", (*call).abs},
	"floor":      {"n-", (*call).floor},
	"ceil":       {"n-", (*call).ceil},
	"round":      {"n-n?", (*call).round},
	"power":      {"n-n", (*call).power},
	"sqrt":       {"n-", (*call).sqrt},
	"formatBase": {"n-n?", (*call).formatBase},

	"sum":     {"a<n>", (*call).sum},
	"max":     {"a<n>", func(c *call) (any, error) { return c.fold(slices.Max[[]float64]) }},
	"min":     {"a<n>", func(c *call) (any, error) { return c.fold(slices.Min[[]float64]) }},
	"average": {"a<n>", (*call).average},

	"boolean": {"x-", (*call).boolean},
	"not":     {"x-", (*call).not},
	"exists":  {"x", (*call).exists},
	"type":    {"x", (*call).typeOf},
	"error":   {"s?", (*call).raise},
	"assert":  {"bs?", (*call).assert},

	"count":    {"a", (*call).count},
	"append":   {"xx", (*call).append},
	"reverse":  {"a", (*call).reverse},
	"distinct": {"x", (*call).distinct},
	"zip":      {"a+", (*call).zip},

	"map":    {"af", (*call).mapItems},
	"filter": {"af", (*call).filter},
	"single": {"af?", (*call).single},
	"reduce": {"afj?", (*call).reduce},
	"sort":   {"af?", (*call).sort},
	"each":   {"o-f", (*call).each},
	"sift":   {"o-f", (*call).sift},

	"keys":   {"x-", (*call).keys},
	"lookup": {"x-s", (*call).lookup},
	"merge":  {"a<o>", (*call).merge},
	"spread": {"x-", (*call).spread},
}

// builtin returns the value of a function, or nil.
func builtin(name string) *function {
	b, ok := builtins[name]
	if !ok {
		return nil
	}
	params, _, _ := syntax.ParseSignature(b.params)
	f := &function{name: "$" + name, params: params, takes: len(params), run: b.run}
	switch name {
	case "string": // $map doesn't pass the index as its second argument
		f.takes = 1
	case "append", "assert", "count", "error", "exists", "zip":
		return f
	}
	f.run = func(c *call) (any, error) {
		if c.missing(0) {
			return undefined{}, nil
		}
		return b.run(c)
	}
	return f
}

// missing reports whether an argument is undefined. Most functions have no value without their first
// argument.
func (c *call) missing(i int) bool { return isUndefined(c.args[i]) }

// textArg returns a text argument, "" if absent.
func (c *call) textArg(i int) string {
	s, _ := c.args[i].(string)
	return s
}

// num returns a numeric argument, or alternative if absent.
func (c *call) num(i int, alternative float64) float64 {
	if f, ok := jsnumber.Float(c.args[i]); ok {
		return f
	}
	return alternative
}

// made accounts for a text that a function created.
func (c *call) made(text string) (any, error) { return text, c.write(len(text)) }

func (c *call) count() (any, error) {
	if c.missing(0) {
		return 0.0, nil
	}
	l := asList(c.args[0])
	return float64(l.len()), nil
}

func (c *call) append() (any, error) {
	switch {
	case c.missing(0):
		return c.args[1], nil
	case c.missing(1):
		return c.args[0], nil
	}
	out := &list{vals: []any{}}
	if err := c.concat(out, asList(c.args[0])); err != nil {
		return nil, err
	}
	return out, c.concat(out, asList(c.args[1]))
}

func (c *call) reverse() (any, error) {
	l := asList(c.args[0])
	if l.len() <= 1 {
		return c.args[0], nil
	}
	if err := c.grow(l.len()); err != nil {
		return nil, err
	}
	out := make([]any, l.len())
	for i := range out {
		out[i] = l.item(l.len() - 1 - i)
	}
	return &list{vals: out}, c.spend(l.len())
}

// distinct returns the first of each set of equal items.
func (c *call) distinct() (any, error) {
	l, ok := listOf(c.args[0])
	if !ok || l.len() <= 1 {
		return c.args[0], nil
	}
	out := &list{vals: []any{}, seq: l.seq}
	seen := map[string]bool{}
	for i := range l.len() {
		item := l.item(i)
		if err := c.spend(stepsPerKey); err != nil {
			return nil, err
		}
		key, err := c.json(item, "", true)
		if err != nil {
			return nil, err
		}
		if seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		if err := c.push(out, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// zip returns an array of the arguments' first items, one of their second items, and so on, up to the length
// of the shortest.
func (c *call) zip() (any, error) {
	length := 0
	for i, arg := range c.args {
		n := 0
		if l, ok := listOf(arg); ok {
			n = l.len()
		}
		if i == 0 || n < length {
			length = n
		}
	}
	if err := c.grow(length * (len(c.args) + 1)); err != nil {
		return nil, err
	}
	if err := c.spend(length * len(c.args)); err != nil {
		return nil, err
	}
	out := &list{vals: make([]any, length)}
	for i := range length {
		tuple := make([]any, len(c.args))
		for j, arg := range c.args {
			tuple[j] = asList(arg).item(i)
		}
		out.vals[i] = &list{vals: tuple}
	}
	return out, nil
}

// callback calls a function with as many of the arguments as it accepts, but at least the first.
func (c *call) callback(f *function, args ...any) (any, error) {
	takes := min(max(f.takes, 1), len(args))
	return c.e.at(c.where, f.label()).invoke(f, args[:takes], nil)
}

// test calls a predicate.
func (c *call) test(f *function, args ...any) (bool, error) {
	v, err := c.callback(f, args...)
	if err != nil || isUndefined(v) {
		return false, err
	}
	return c.truthy(v, 1)
}

// forEach visits the items of the first argument.
func (c *call) forEach(visit func(i int, item any) error) error {
	l := asList(c.args[0])
	for i := range l.len() {
		if err := c.spend(1); err != nil {
			return err
		}
		if err := visit(i, l.item(i)); err != nil {
			return err
		}
	}
	return nil
}

// function returns a function argument, nil if absent.
func (c *call) function(i int) *function {
	f, _ := c.args[i].(*function)
	return f
}

func (c *call) mapItems() (any, error) {
	out := &list{seq: true}
	return out, c.forEach(func(i int, item any) error {
		v, err := c.callback(c.function(1), item, float64(i), c.args[0])
		if err != nil || isUndefined(v) {
			return err
		}
		return c.push(out, v)
	})
}

func (c *call) filter() (any, error) {
	out := &list{seq: true}
	return out, c.forEach(func(i int, item any) error {
		keep, err := c.test(c.function(1), item, float64(i), c.args[0])
		if err != nil || !keep {
			return err
		}
		return c.push(out, item)
	})
}

func (c *call) single() (any, error) {
	var only any = undefined{}
	count := 0
	err := c.forEach(func(i int, item any) (err error) {
		matches := true
		if f := c.function(1); f != nil {
			matches, err = c.test(f, item, float64(i), c.args[0])
		}
		if err != nil || !matches {
			return err
		}
		only = item
		if count++; count > 1 {
			return c.fail("D3138", "$single found more than one item")
		}
		return nil
	})
	if err == nil && count == 0 {
		return nil, c.fail("D3139", "$single found no item")
	}
	return only, err
}

// reduce calls a function with its previous result and the next item.
func (c *call) reduce() (any, error) {
	f, result := c.function(1), c.args[2]
	if f.takes < 2 {
		return nil, c.fail("D3050", "argument 2 of $reduce must be a function of at least two parameters")
	}
	first := isUndefined(result)
	err := c.forEach(func(i int, item any) (err error) {
		if first && i == 0 {
			result = item
			return nil
		}
		result, err = c.callback(f, result, item, float64(i), c.args[0])
		return err
	})
	return result, err
}

// forMembers visits the members of the first argument.
func (c *call) forMembers(visit func(key string, value any) error) error {
	keys, _ := keysOf(c.args[0])
	for _, k := range keys {
		if err := c.spend(stepsPerKey); err != nil {
			return err
		}
		if err := visit(k, member(c.args[0], k)); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) each() (any, error) {
	out := &list{seq: true}
	return out, c.forMembers(func(key string, value any) error {
		v, err := c.callback(c.function(1), value, key, c.args[0])
		if err != nil || isUndefined(v) {
			return err
		}
		return c.push(out, v)
	})
}

func (c *call) sift() (any, error) {
	out := &Object{}
	err := c.forMembers(func(key string, value any) error {
		keep, err := c.test(c.function(1), value, key, c.args[0])
		if err != nil || !keep {
			return err
		}
		out.Set(key, value)
		return c.grow(1)
	})
	if out.Len() == 0 {
		return undefined{}, err
	}
	return out, err
}

func (c *call) boolean() (any, error) {
	return c.truthy(c.args[0], 1)
}

func (c *call) not() (any, error) {
	holds, err := c.truthy(c.args[0], 1)
	return !holds, err
}

func (c *call) exists() (any, error) { return !c.missing(0), nil }

func (c *call) typeOf() (any, error) {
	return kindName(kindOf(c.args[0])), nil
}

// raise implements $error.
func (c *call) raise() (any, error) {
	return nil, c.giveUp(0, "D3137", "$error() was called")
}

func (c *call) assert() (any, error) {
	if holds, _ := c.args[0].(bool); holds || c.missing(0) {
		return undefined{}, nil
	}
	return nil, c.giveUp(1, "D3141", "$assert() failed")
}

// giveUp returns an error with a message from the expression.
func (c *call) giveUp(arg int, code, otherwise string) error {
	if c.missing(arg) {
		return c.fail(code, "%s", otherwise)
	}
	return c.fail(code, "%s", c.textArg(arg))
}

// keys returns the distinct keys of an object, or of all objects in an array.
func (c *call) keys() (any, error) {
	out := &list{seq: true}
	return out, c.addKeys(out, map[string]bool{}, c.args[0], 1)
}

func (c *call) addKeys(out *list, seen map[string]bool, v any, depth int) error {
	if err := c.deep(depth); err != nil {
		return err
	}
	if l, ok := listOf(v); ok {
		for i := range l.len() {
			if err := c.spend(1); err != nil {
				return err
			}
			if err := c.addKeys(out, seen, l.item(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	keys, _ := keysOf(v)
	if err := c.spend(stepsPerKey * len(keys)); err != nil {
		return err
	}
	for _, k := range keys {
		if seen[k] {
			continue
		}
		seen[k] = true
		if err := c.push(out, k); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) lookup() (any, error) {
	if c.missing(1) {
		return undefined{}, nil
	}
	return c.e.field(c.args[0], c.textArg(1), c.where)
}

// merge merges objects; the last value of a key wins.
func (c *call) merge() (any, error) {
	out := &Object{}
	l := asList(c.args[0])
	for i := range l.len() {
		o := l.item(i)
		keys, _ := keysOf(o)
		if err := c.grow(len(keys)); err != nil {
			return nil, err
		}
		if err := c.spend(1 + stepsPerKey*len(keys)); err != nil {
			return nil, err
		}
		for _, k := range keys {
			out.Set(k, member(o, k))
		}
	}
	return out, nil
}

// spread returns an object for each member.
func (c *call) spread() (any, error) {
	v := c.args[0]
	if k := kindOf(v); k != 'a' && k != 'o' {
		return v, nil
	}
	// The result for an array is an array, even with one item.
	l, isArray := listOf(v)
	out := &list{seq: !isArray || l.len() == 0}
	return out, c.spreadInto(out, v, 1)
}

func (c *call) spreadInto(out *list, v any, depth int) error {
	if err := c.deep(depth); err != nil {
		return err
	}
	if l, ok := listOf(v); ok {
		for i := range l.len() {
			if err := c.spend(1); err != nil {
				return err
			}
			if err := c.spreadInto(out, l.item(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	keys, ok := keysOf(v)
	if !ok {
		return c.push(out, v)
	}
	if err := c.spend(stepsPerObject * len(keys)); err != nil {
		return err
	}
	for _, k := range keys {
		o := &Object{}
		o.Set(k, member(v, k))
		if err := c.push(out, o); err != nil {
			return err
		}
	}
	return nil
}
