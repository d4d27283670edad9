package jsonata

import "github.com/united-workforce/uwf/moderator/jsonata/syntax"

// call is a call of a function: its arguments fit its parameters, and those
// that are absent are undefined.
type call struct {
	site
	args []any
}

// tailCall is the result of a function whose last act is to call another. The caller continues
// with that call, so a loop written as recursion needs no depth.
type tailCall struct {
	site
	f       *function
	args    []any
	context any
}

// open marks an argument that a partial call leaves open.
type open struct{}

// callFunction evaluates a call; piped are the arguments that come from the
// left of "~>".
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
	return s.failValue(callee, code, "only a function can be called, not %s", describe(callee))
}

// invoke runs a function in a context.
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

// lambda makes the value of function(…){…}: it keeps the context and the
// variables of the place where it is written.
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

// tail evaluates the body of a function; a call that is the last thing in it is
// left to the caller.
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

// partial is the function that fills the open places of args.
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

// compose is the function that calls first, then second with what first gave.
func compose(first, second *function) *function {
	return &function{name: second.name, free: true, takes: 1, run: func(c *call) (any, error) {
		v, err := c.invoke(first, c.args, nil)
		if err != nil {
			return nil, err
		}
		return &tailCall{c.site, second, []any{unwrap(v, false)}, nil}, nil
	}}
}

// apply evaluates "~>": a call gets the left side as first argument, a function
// is called with it, and two functions are composed.
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
		return nil, e.at(n.At, "~>").failValue(right, "T2006", `the right side of "~>" must be a function, not %s`, describe(right))
	}
	if first, ok := left.(*function); ok {
		return compose(first, f), nil
	}
	return e.at(n.At, f.label()).invoke(f, []any{left}, nil)
}
