package jsonata

// infix reads on after an operator that follows an operand.
func (p *parser) infix(t token, left node) (node, error) {
	at := common{at: t.start}
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
		at.keep = left.shared().keep || right.shared().keep
		return &applyNode{at, left, right}, nil
	}
	return &binaryNode{at, t.text, left, right}, nil
}

func (p *parser) condition(t token, left node) (node, error) {
	n := &conditionNode{common: common{at: t.start}, condition: left}
	var err error
	if n.then, err = p.expression(0); err != nil || !p.tok.is(":") {
		return n, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n.otherwise, err = p.expression(0)
	return n, err
}

func (p *parser) assignment(t token, left node) (node, error) {
	v, ok := left.(*variableNode)
	if !ok || len(v.filters) > 0 || v.group != nil {
		e := p.fail(t.start, "S0212", ":=", `":=" needs a variable on its left`)
		e.Hint = "write $name := value"
		return nil, e
	}
	p.assigned[v.name] = true
	value, err := p.expression(t.power() - 1)
	return &bindNode{common{at: t.start}, v.name, value}, err
}

// call reads on after "(" behind an operand.
func (p *parser) call(t token, callee node) (node, error) {
	c := &callNode{common: common{at: callee.shared().at}, callee: callee}
	if p.tok.is(")") {
		return c, p.advance()
	}
	err := p.list(func() error {
		if p.tok.is("?") {
			c.partial = true
			c.args = append(c.args, nil)
			return p.advance()
		}
		arg, err := p.expression(0)
		c.args = append(c.args, arg)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, p.expect(")")
}
