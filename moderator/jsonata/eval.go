package jsonata

import (
	"cmp"
	"context"
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
	e := &evaluator{ctx: ctx, src: x.src, limits: o.withDefaults(), root: input}
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
	if value, err = e.export(v, x.root.shared().at, 1); err != nil {
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

	steps, depth, items, bytes int
}

// eval gives the value of a node in a context, with all that follows the node.
func (e *evaluator) eval(n node, in any, env *frame) (any, error) {
	c := n.shared()
	e.depth++
	defer func() { e.depth-- }()
	if err := e.deep(c.at, e.depth); err != nil {
		return nil, err
	}
	if err := e.spend(c.at, 1); err != nil {
		return nil, err
	}
	v, err := e.value(n, in, env)
	if err != nil {
		return nil, err
	}
	for _, predicate := range c.filters {
		if v, err = e.filter(predicate, v, env); err != nil {
			return nil, err
		}
	}
	if _, isPath := n.(*pathNode); !isPath && c.group != nil {
		if v, err = e.group(c.group, v, env); err != nil {
			return nil, err
		}
	}
	return unwrap(v, c.keep), nil
}

// value evaluates a node by itself.
func (e *evaluator) value(n node, in any, env *frame) (any, error) {
	switch n := n.(type) {
	case *pathNode:
		return e.path(n, in, env)
	case *nameNode:
		return e.field(in, n.name, n.at)
	case *variableNode:
		return e.variable(n, in, env), nil
	case *stringNode:
		return n.text, nil
	case *numberNode:
		return n.value, nil
	case *constNode:
		return n.value, nil
	case *wildcardNode:
		return e.wildcard(in, n.at)
	case *descendantNode:
		return e.descendants(in, n.at)
	case *arrayNode:
		return e.array(n, in, env)
	case *rangeNode:
		return e.numbers(n, in, env)
	case *objectNode:
		return e.group(&n.group, in, env)
	case *callNode:
		return e.callFunction(n, in, env)
	case *applyNode:
		return e.apply(n, in, env)
	case *lambdaNode:
		return e.lambda(n, in, env), e.spend(n.at, stepsPerObject)
	case *regexNode:
		return n.function, nil
	}
	return e.control(n, in, env)
}

// control evaluates what decides which other nodes are evaluated, and the
// operators.
func (e *evaluator) control(n node, in any, env *frame) (any, error) {
	switch n := n.(type) {
	case *blockNode:
		return e.block(n, in, env)
	case *bindNode:
		v, err := e.eval(n.value, in, env)
		if err != nil {
			return nil, err
		}
		env.set(n.name, v)
		return v, e.spend(n.at, stepsPerKey)
	case *conditionNode:
		branch, err := e.branch(n, in, env)
		if err != nil || branch == nil {
			return undefined{}, err
		}
		return e.eval(branch, in, env)
	case *negateNode:
		return e.negate(n, in, env)
	case *binaryNode:
		return e.binary(n, in, env)
	}
	return nil, e.at(n.shared().at, "").fail("S0206", "an expression of an unknown type %T", n)
}

func (e *evaluator) variable(n *variableNode, in any, env *frame) any {
	if n.name == "" {
		return unwrapOuter(in)
	}
	if v, ok := env.get(n.name); ok {
		return v
	}
	switch {
	case n.name == "$":
		return e.root
	case n.builtin != nil:
		return n.builtin
	}
	return undefined{}
}

func (e *evaluator) block(n *blockNode, in any, env *frame) (v any, err error) {
	inner := &frame{parent: env}
	v = undefined{}
	for _, expr := range n.exprs {
		if v, err = e.eval(expr, in, inner); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// branch is the side of a condition that counts, nil if there is none.
func (e *evaluator) branch(n *conditionNode, in any, env *frame) (node, error) {
	holds, err := e.holds(n.condition, in, env)
	if holds {
		return n.then, err
	}
	return n.otherwise, err
}

// holds evaluates a node as a condition.
func (e *evaluator) holds(n node, in any, env *frame) (bool, error) {
	v, err := e.eval(n, in, env)
	if err != nil {
		return false, err
	}
	return e.at(n.shared().at, "").truthy(v, 1)
}
