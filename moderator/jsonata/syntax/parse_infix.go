package syntax

// infix reads on after an operator that follows an operand.
func (p *parser) infix(t token, left Node) (Node, error) {
	at := Common{At: t.start}
	switch t.text {
	case "[":
		return p.bracket(left)
	case "{":
		return p.grouping(t, left)
	case "(":
		return p.call(t, left)
	case "?":
		return p.condition(t, left)
	case ":=":
		return p.assignment(t, left)
	case "^":
		return p.order(t, left)
	case "@":
		return nil, p.leftOut(t.start, "@", "joins (context binding @)", "write a block with a variable")
	case "#":
		return nil, p.leftOut(t.start, "#", "positional binding #", "write an index: list[0]")
	}
	power := t.power()
	if t.text == "??" || t.text == "?:" {
		power = 0 // whatever follows is the alternative
	}
	right, err := p.expression(power)
	if err != nil {
		return nil, err
	}
	switch t.text {
	case ".":
		return p.step(left, right), nil
	case "~>":
		at.Keep = left.Shared().Keep || right.Shared().Keep
		return &Apply{at, left, right}, nil
	}
	return &Binary{at, t.text, left, right}, nil
}

func (p *parser) condition(t token, left Node) (Node, error) {
	n := &Condition{Common: Common{At: t.start}, Condition: left}
	var err error
	if n.Then, err = p.expression(0); err != nil || !p.tok.is(":") {
		return n, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n.Otherwise, err = p.expression(0)
	return n, err
}

func (p *parser) assignment(t token, left Node) (Node, error) {
	v, ok := left.(*Variable)
	if !ok || len(v.Filters) > 0 || v.Group != nil {
		e := p.fail(t.start, "S0212", ":=", `":=" needs a variable on its left`)
		e.Hint = "write $name := value"
		return nil, e
	}
	p.assigned[v.Name] = true
	value, err := p.expression(t.power() - 1)
	return &Bind{Common{At: t.start}, v.Name, value}, err
}

// call reads on after "(" behind an operand.
func (p *parser) call(t token, callee Node) (Node, error) {
	c := &Call{Common: Common{At: callee.Shared().At}, Function: callee}
	if p.tok.is(")") {
		return c, p.advance()
	}
	err := p.list(func() error {
		if p.tok.is("?") {
			c.Partial = true
			c.Args = append(c.Args, nil)
			return p.advance()
		}
		arg, err := p.expression(0)
		c.Args = append(c.Args, arg)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, p.expect(")")
}
