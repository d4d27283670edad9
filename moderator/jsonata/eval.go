package jsonata

import (
	"cmp"
	"context"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// Options bound an evaluation. A zero field stands for its default. With the
// defaults an evaluation takes about half a second and 100 MB at worst.
type Options struct {
	// MaxSteps bounds the work: nodes evaluated, values visited (3,000,000).
	MaxSteps int
	// MaxDepth bounds how deep expressions and values are nested (1,000).
	MaxDepth int
	// MaxItems bounds the items of all arrays and objects that are made, those
	// in between included (1,000,000).
	MaxItems int
	// MaxBytes bounds all texts that are made (16 MiB).
	MaxBytes int
	// Bindings are the values of variables, by name without "$".
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

// Eval evaluates the expression over an input. defined is false if it has no
// value, as the path to a field that does not exist; value is nil then.
//
// Every error is an *[Error]: one that JSONata defines, or a bound of o that was
// reached ([ErrLimit]), or the end of ctx (its cause).
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
	// functions are those that the expression names.
	functions map[string]*function

	steps, depth, items, bytes int
}

// eval gives the value of a node in a context, with all that follows the node.
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

// value evaluates a node by itself.
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

// control evaluates what decides which other nodes are evaluated, and the
// operators.
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

// branch is the side of a condition that counts, nil if there is none.
func (e *evaluator) branch(n *syntax.Condition, in any, env *frame) (syntax.Node, error) {
	holds, err := e.holds(n.Condition, in, env)
	if holds {
		return n.Then, err
	}
	return n.Otherwise, err
}

// holds evaluates a node as a condition.
func (e *evaluator) holds(n syntax.Node, in any, env *frame) (bool, error) {
	v, err := e.eval(n, in, env)
	if err != nil {
		return false, err
	}
	return e.at(n.Shared().At, "").truthy(v, 1)
}
