package jsonata

import (
	"cmp"
	"context"
	"math"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// Options bounds an evaluation. A zero field means its default. With the defaults, an evaluation takes at
// most about half a second and 100 MB.
type Options struct {
	// MaxSteps bounds the nodes evaluated and values visited (3,000,000).
	MaxSteps int
	// MaxDepth bounds the nesting of expressions and values (1,000).
	MaxDepth int
	// MaxItems bounds the total items of all arrays and objects created, including intermediate ones
	// (1,000,000).
	MaxItems int
	// MaxBytes bounds the total size of all texts created (16 MiB).
	MaxBytes int
	// Bindings holds the values of variables, by name without "$".
	Bindings map[string]any
}

// withDefaults fills the zero fields.
func (o Options) withDefaults() Options {
	o.MaxSteps = cmp.Or(o.MaxSteps, 3_000_000)
	o.MaxDepth = cmp.Or(o.MaxDepth, 1_000)
	o.MaxItems = cmp.Or(o.MaxItems, 1_000_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 16<<20)
	return o
}

// Eval evaluates the expression over an input. defined is false and value is nil if the expression has no
// value, such as a path to a missing field.
//
// Every error is an *[Error]: an error defined by JSONata, a bound in o that was exceeded ([ErrLimit]), or
// the cause of ctx's end.
func (x *Expr) Eval(ctx context.Context, input any, o Options) (value any, defined bool, err error) {
	e := &evaluator{ctx: ctx, src: x.src, limits: o.withDefaults(), root: input, functions: x.functions}
	if ctx.Err() != nil {
		return nil, false, e.stopped(0)
	}
	start := input
	if _, ok := listOf(input); ok {
		start = &list{vals: []any{input}, seq: true, outer: true}
	}
	env := &frame{parent: &frame{vars: o.Bindings}}
	v, err := e.eval(x.root, start, env)
	if err != nil || isUndefined(v) {
		return nil, false, err
	}
	if value, err = e.export(v, x.root.Shared().At, 1); err != nil {
		return nil, false, err
	}
	return value, true, nil
}

// frame holds the variables of a block.
type frame struct {
	vars   map[string]any
	parent *frame
}

func (f *frame) set(name string, v any) {
	if f.vars == nil {
		f.vars = map[string]any{}
	}
	f.vars[name] = v
}

func (f *frame) get(name string) (any, bool) {
	for ; f != nil; f = f.parent {
		if v, ok := f.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// evaluator is one evaluation.
type evaluator struct {
	ctx    context.Context
	src    string
	limits Options
	root   any
	// functions holds the functions that the expression names.
	functions map[string]*function

	steps, depth, items, bytes int
}

// eval evaluates a node, including its predicates and grouping, in a context.
func (e *evaluator) eval(n syntax.Node, in any, env *frame) (any, error) {
	c := n.Shared()
	e.depth++
	defer func() { e.depth-- }()
	if err := e.deep(c.At, e.depth); err != nil {
		return nil, err
	}
	if err := e.spend(c.At, 1); err != nil {
		return nil, err
	}
	v, err := e.value(n, in, env)
	if err != nil {
		return nil, err
	}
	for _, predicate := range c.Filters {
		if v, err = e.filter(predicate, v, env); err != nil {
			return nil, err
		}
	}
	if _, isPath := n.(*syntax.Path); !isPath && c.Group != nil {
		if v, err = e.group(c.Group, v, env); err != nil {
			return nil, err
		}
	}
	return unwrap(v, c.Keep), nil
}

// value evaluates a node without its predicates and grouping.
func (e *evaluator) value(n syntax.Node, in any, env *frame) (any, error) {
	switch n := n.(type) {
	case *syntax.Path:
		return e.path(n, in, env)
	case *syntax.Name:
		return e.field(in, n.Name, n.At)
	case *syntax.Variable:
		return e.variable(n, in, env), nil
	case *syntax.String:
		return n.Text, nil
	case *syntax.Number:
		return n.Value, nil
	case *syntax.Const:
		return n.Value, nil
	case *syntax.Wildcard:
		return e.wildcard(in, n.At)
	case *syntax.Descendants:
		return e.descendants(in, n.At)
	case *syntax.Array:
		return e.array(n, in, env)
	case *syntax.Range:
		return e.numbers(n, in, env)
	case *syntax.Object:
		return e.group(&n.Group, in, env)
	case *syntax.Call:
		return e.callFunction(n, in, env)
	case *syntax.Apply:
		return e.apply(n, in, env)
	case *syntax.Lambda:
		return e.lambda(n, in, env), e.spend(n.At, stepsPerObject)
	case *syntax.Pattern:
		return regexFunction(n.Regex), nil
	}
	return e.control(n, in, env)
}

// control evaluates operators and the nodes that select which others to evaluate.
func (e *evaluator) control(n syntax.Node, in any, env *frame) (any, error) {
	switch n := n.(type) {
	case *syntax.Block:
		return e.block(n, in, env)
	case *syntax.Bind:
		v, err := e.eval(n.Value, in, env)
		if err != nil {
			return nil, err
		}
		env.set(n.Name, v)
		return v, e.spend(n.At, stepsPerKey)
	case *syntax.Condition:
		branch, err := e.branch(n, in, env)
		if err != nil || branch == nil {
			return undefined{}, err
		}
		return e.eval(branch, in, env)
	case *syntax.Negate:
		return e.negate(n, in, env)
	case *syntax.Binary:
		return e.binary(n, in, env)
	}
	return nil, e.at(n.Shared().At, "").fail("S0206", "an expression of an unknown type %T", n)
}

func (e *evaluator) variable(n *syntax.Variable, in any, env *frame) any {
	if n.Name == "" {
		return unwrapOuter(in)
	}
	if v, ok := env.get(n.Name); ok {
		return v
	}
	if n.Name == "$" {
		return e.root
	}
	if f := e.functions[n.Name]; f != nil {
		return f
	}
	return undefined{}
}

func (e *evaluator) block(n *syntax.Block, in any, env *frame) (v any, err error) {
	inner := &frame{parent: env}
	v = undefined{}
	for _, expr := range n.Exprs {
		if v, err = e.eval(expr, in, inner); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// branch returns the selected branch of a condition, or nil.
func (e *evaluator) branch(n *syntax.Condition, in any, env *frame) (syntax.Node, error) {
	holds, err := e.holds(n.Condition, in, env)
	if holds {
		return n.Then, err
	}
	return n.Otherwise, err
}

// holds reports whether a node evaluates to a true value.
func (e *evaluator) holds(n syntax.Node, in any, env *frame) (bool, error) {
	v, err := e.eval(n, in, env)
	if err != nil {
		return false, err
	}
	return e.at(n.Shared().At, "").truthy(v, 1)
}

// maxRange is JSONata's own limit.
const maxRange = 10_000_000

// array evaluates […]. It flattens arrays among the items, except array constructors.
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
		case l.vals == nil && len(n.Items) == 1: // a single range stays a range
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

// whole returns a bound of a range, which can be undefined.
func (s site) whole(v any, code, side string) (float64, error) {
	f, ok := jsnumber.Float(v)
	if !isUndefined(v) && (!ok || f != math.Trunc(f) || math.Abs(f) > 1<<53) {
		return 0, s.fail(code, "the %s side of %q must be a whole number, not %s", side, s.token, describe(v))
	}
	return f, nil
}

// bucket is a group: the items with the same key, and the pair that produced it.
type bucket struct {
	pair  int
	items list
	// alone is the only item so far, if it isn't an array with one item.
	alone any
	many  bool
}

// group evaluates {key: value}: the key for each item, then the value once for all items with the same key.
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

// key evaluates the key of an item, or returns nil if it has none.
func (e *evaluator) key(n syntax.Node, item any, env *frame) (*string, error) {
	v, err := e.eval(n, item, env)
	if err != nil || isUndefined(v) {
		return nil, err
	}
	key, ok := v.(string)
	if !ok {
		return nil, e.at(n.Shared().At, "").fail("T1003", "a key must be a string, not %s", describe(v))
	}
	return &key, nil
}

func (s site) addTo(b *bucket, key string, item any, pair int) error {
	if b.pair != pair {
		return s.fail("D1009", "duplicate key %s in {…}", syntax.Quote(syntax.Shorten(key, syntax.MaxShown)))
	}
	if !b.many {
		b.many = true
		if err := s.concat(&b.items, asList(b.alone)); err != nil {
			return err
		}
	}
	return s.concat(&b.items, asList(item))
}

// values evaluates the value for each key.
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

// call is a function call with matched arguments; absent ones are undefined.
type call struct {
	site
	args []any
}

// tailCall is the result of a function that ends with another call. The caller makes that call, so a loop
// written as recursion doesn't use up the depth.
type tailCall struct {
	site
	f       *function
	args    []any
	context any
}

// open marks an argument that a partial call leaves open.
type open struct{}

// callFunction evaluates a call. piped holds the argument from the left of "~>", if any.
func (e *evaluator) callFunction(n *syntax.Call, in any, env *frame, piped ...any) (any, error) {
	t, err := e.prepare(n, in, env, piped)
	if err != nil {
		return nil, err
	}
	if n.Partial {
		return partial(t.f, t.args), nil
	}
	return t.invoke(t.f, t.args, t.context)
}

// prepare evaluates the function and the arguments of a call.
func (e *evaluator) prepare(n *syntax.Call, in any, env *frame, piped []any) (*tailCall, error) {
	callee, err := e.eval(n.Function, in, env)
	if err != nil {
		return nil, err
	}
	f, ok := callee.(*function)
	if !ok {
		return nil, e.notCallable(n, callee)
	}
	args := make([]any, 0, len(piped)+len(n.Args))
	args = append(args, piped...)
	for _, a := range n.Args {
		var v any = open{}
		if a != nil {
			if v, err = e.eval(a, in, env); err != nil {
				return nil, err
			}
		}
		args = append(args, v)
	}
	name := f.label()
	if v, ok := n.Function.(*syntax.Variable); ok {
		name = "$" + syntax.Shorten(v.Name, syntax.MaxShown)
	}
	return &tailCall{e.at(n.At, name), f, args, unwrapOuter(in)}, nil
}

func (e *evaluator) notCallable(n *syntax.Call, callee any) error {
	s := e.at(n.At, "")
	if path, ok := n.Function.(*syntax.Path); ok && isUndefined(callee) {
		if err := missingDollar(e.src, n, path); err != nil {
			return err
		}
	}
	code := "T1006"
	if n.Partial {
		code = "T1008"
	}
	return s.fail(code, "only a function can be called, not %s", describe(callee))
}

// invoke calls a function with a context.
func (s site) invoke(f *function, args []any, context any) (any, error) {
	s.e.depth++
	defer func() { s.e.depth-- }()
	if err := s.deep(s.e.depth); err != nil {
		return nil, err
	}
	for {
		v, err := s.once(f, args, context)
		next, ok := v.(*tailCall)
		if err != nil || !ok {
			return v, err
		}
		s, f, args, context = next.site, next.f, next.args, next.context
	}
}

func (s site) once(f *function, args []any, context any) (any, error) {
	if err := s.spend(stepsPerCall); err != nil {
		return nil, err
	}
	c := &call{site: s, args: args}
	if !f.free {
		if err := c.bind(f, args, context); err != nil {
			return nil, err
		}
	}
	return f.run(c)
}

// lambda returns the value of function(…){…}, which captures the context and variables of its definition.
func (e *evaluator) lambda(n *syntax.Lambda, in any, env *frame) *function {
	return &function{
		params: n.Signature, free: n.Signature == nil, takes: len(n.Params),
		run: func(c *call) (any, error) {
			if err := c.spend(stepsPerKey * len(n.Params)); err != nil {
				return nil, err
			}
			inner := &frame{parent: env}
			for i, name := range n.Params {
				var v any = undefined{}
				if i < len(c.args) {
					v = c.args[i]
				}
				inner.set(name, v)
			}
			return e.tail(n.Body, in, inner)
		},
	}
}

// tail evaluates the body of a function and leaves a call in tail position to the caller.
func (e *evaluator) tail(n syntax.Node, in any, env *frame) (any, error) {
	if c := n.Shared(); len(c.Filters) > 0 || c.Group != nil || c.Keep {
		return e.eval(n, in, env)
	}
	if err := e.spend(n.Shared().At, 1); err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *syntax.Call:
		if !n.Partial {
			return e.prepare(n, in, env, nil)
		}
	case *syntax.Condition:
		branch, err := e.branch(n, in, env)
		if err != nil || branch == nil {
			return undefined{}, err
		}
		return e.tail(branch, in, env)
	case *syntax.Block:
		if last := len(n.Exprs) - 1; last >= 0 {
			inner := &frame{parent: env}
			for _, expr := range n.Exprs[:last] {
				if _, err := e.eval(expr, in, inner); err != nil {
					return nil, err
				}
			}
			return e.tail(n.Exprs[last], in, inner)
		}
	}
	return e.eval(n, in, env)
}

// partial returns a function that fills the open arguments in args.
func partial(f *function, args []any) *function {
	takes := 0
	for _, a := range args {
		if _, ok := a.(open); ok {
			takes++
		}
	}
	return &function{name: f.name, free: true, takes: takes, run: func(c *call) (any, error) {
		filled := make([]any, len(args))
		next := 0
		for i, a := range args {
			if _, ok := a.(open); ok {
				a = undefined{}
				if next < len(c.args) {
					a = c.args[next]
				}
				next++
			}
			filled[i] = a
		}
		return &tailCall{c.site, f, filled, nil}, nil
	}}
}

// compose returns the function that calls first, then second with its result.
func compose(first, second *function) *function {
	return &function{name: second.name, free: true, takes: 1, run: func(c *call) (any, error) {
		v, err := c.invoke(first, c.args, nil)
		if err != nil {
			return nil, err
		}
		return &tailCall{c.site, second, []any{unwrap(v, false)}, nil}, nil
	}}
}

// apply evaluates "~>": a call gets the left side as its first argument, a function is called with it, and
// two functions are composed.
func (e *evaluator) apply(n *syntax.Apply, in any, env *frame) (any, error) {
	left, err := e.eval(n.Left, in, env)
	if err != nil {
		return nil, err
	}
	if call, ok := n.Right.(*syntax.Call); ok && !call.Partial {
		return e.callFunction(call, in, env, left)
	}
	right, err := e.eval(n.Right, in, env)
	if err != nil {
		return nil, err
	}
	f, ok := right.(*function)
	if !ok {
		return nil, e.at(n.At, "~>").fail("T2006", `the right side of "~>" must be a function, not %s`, describe(right))
	}
	if first, ok := left.(*function); ok {
		return compose(first, f), nil
	}
	return e.at(n.At, f.label()).invoke(f, []any{left}, nil)
}
