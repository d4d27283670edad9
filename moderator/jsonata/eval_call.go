package jsonata

// call is a call of a function: its arguments fit its parameters, and those
// that are absent are undefined.
type call struct {
	site
	args []any
}

// open stands for an argument that a partial call leaves open.
type open struct{}

// callFunction evaluates a call; piped are the arguments that come from the
// left of "~>".
func (e *evaluator) callFunction(n *callNode, in any, env *frame, piped []any) (any, error) {
	callee, err := e.eval(n.callee, in, env)
	if err != nil {
		return nil, err
	}
	f, ok := callee.(*function)
	if !ok {
		code := "T1006"
		if n.partial {
			code = "T1008"
		}
		return nil, e.at(n.at, "").failValue(callee, code, "only a function can be called, not %s", describe(callee))
	}
	args := make([]any, 0, len(piped)+len(n.args))
	args = append(args, piped...)
	for _, a := range n.args {
		var v any = open{}
		if a != nil {
			if v, err = e.eval(a, in, env); err != nil {
				return nil, err
			}
		}
		args = append(args, v)
	}
	if n.partial {
		return partial(f, args), nil
	}
	return e.at(n.at, f.name).invoke(f, args, unwrapOuter(in))
}

// invoke runs a function in a context.
func (s site) invoke(f *function, args []any, context any) (any, error) {
	s.e.depth++
	defer func() { s.e.depth-- }()
	if err := s.deep(s.e.depth); err != nil {
		return nil, err
	}
	if err := s.spend(stepsPerCall); err != nil {
		return nil, err
	}
	s.token = f.name
	c := &call{site: s, args: args}
	if !f.free {
		if err := c.bind(f, args, context); err != nil {
			return nil, err
		}
	}
	return f.run(c)
}

// partial is the function that fills the open places of args.
func partial(f *function, args []any) *function {
	return &function{name: f.name, free: true, run: func(c *call) (any, error) {
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
		return c.invoke(f, filled, nil)
	}}
}

// compose is the function that calls first, then second with what first gave.
func compose(first, second *function) *function {
	return &function{name: second.name, free: true, run: func(c *call) (any, error) {
		v, err := c.invoke(first, c.args, nil)
		if err != nil {
			return nil, err
		}
		return c.invoke(second, []any{unwrap(v, false)}, nil)
	}}
}

// apply evaluates "~>": a call gets the left side as first argument, a function
// is called with it, and two functions are composed.
func (e *evaluator) apply(n *applyNode, in any, env *frame) (any, error) {
	left, err := e.eval(n.left, in, env)
	if err != nil {
		return nil, err
	}
	if call, ok := n.right.(*callNode); ok && !call.partial {
		return e.callFunction(call, in, env, []any{left})
	}
	right, err := e.eval(n.right, in, env)
	if err != nil {
		return nil, err
	}
	f, ok := right.(*function)
	if !ok {
		return nil, e.at(n.at, "~>").failValue(right, "T2006", `the right side of "~>" must be a function, not %s`, describe(right))
	}
	if first, ok := left.(*function); ok {
		return compose(first, f), nil
	}
	return e.at(n.at, f.name).invoke(f, []any{left}, nil)
}
