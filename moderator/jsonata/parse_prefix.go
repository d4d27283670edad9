package jsonata

import "fmt"

// prefix reads what begins with a token that stands where an operand should.
func (p *parser) prefix(t token) (node, error) {
	at := common{at: t.start}
	switch t.kind {
	case endToken:
		if p.unfinished < 0 {
			p.unfinished = t.start
		}
		return &constNode{common: at}, nil
	case nameToken:
		if !t.quoted && (t.text == "function" || t.text == "λ") && p.tok.is("(") {
			return p.lambda(t)
		}
		return newName(t), nil
	case variableToken:
		return &variableNode{common: at, name: t.text}, nil
	case stringToken:
		return &stringNode{common: at, text: t.text}, nil
	case numberToken:
		return &numberNode{common: at, value: t.number}, nil
	case constToken:
		return newConst(t), nil
	}
	return p.prefixOperator(t)
}

func (p *parser) prefixOperator(t token) (node, error) {
	at := common{at: t.start}
	switch t.text {
	case "and", "or", "in": // fields may be called so
		return newName(t), nil
	case "-":
		return p.negation(t)
	case "*":
		return &wildcardNode{at}, nil
	case "**":
		return &descendantNode{at}, nil
	case "(":
		return p.block(t)
	case "[":
		return p.array(t)
	case "{":
		g, err := p.object(t)
		return &objectNode{at, g}, err
	case "%":
		return nil, p.leftOut(t.start, "%", "parent operator %", "write the path from $$")
	case "|":
		return nil, p.leftOut(t.start, "|", "transforms |…|…|", "write $merge([object, {…}])")
	}
	e := p.fail(t.start, "S0211", t.text, fmt.Sprintf("an operand should come here, not %q", t.text))
	switch t.text {
	case "=":
		e.Hint = `write one "=" to compare`
	case "&":
		e.Hint = `write "and"`
	case ">":
		e.Hint = `write ">=" or "!="`
	}
	return nil, e
}

func newName(t token) node {
	at := common{at: t.start}
	return &pathNode{common: at, steps: []node{&nameNode{common: at, name: t.text}}}
}

func newConst(t token) node {
	n := &constNode{common: common{at: t.start}}
	if t.text != "null" {
		n.value = t.text == "true"
	}
	return n
}

func (p *parser) negation(t token) (node, error) {
	operand, err := p.expression(70)
	if err != nil {
		return nil, err
	}
	if n, ok := operand.(*numberNode); ok {
		n.value, n.at = -n.value, t.start
		return n, nil
	}
	return &negateNode{common{at: t.start}, operand}, nil
}

// block reads on after "(": expressions with semicolons between them.
func (p *parser) block(t token) (node, error) {
	b := &blockNode{common: common{at: t.start}}
	for !p.tok.is(")") {
		n, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		b.exprs = append(b.exprs, n)
		b.whole = b.whole || beginsWhole(n)
		if !p.tok.is(";") {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	return b, p.expect(")")
}

// array reads on after "[".
func (p *parser) array(t token) (node, error) {
	a := &arrayNode{common: common{at: t.start}}
	if p.tok.is("]") {
		return a, p.advance()
	}
	err := p.list(func() error {
		item, err := p.expression(0)
		if err == nil && p.tok.is("..") {
			item, err = p.rangeFrom(item)
		}
		a.items = append(a.items, item)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, p.expect("]")
}

func (p *parser) rangeFrom(from node) (node, error) {
	at := common{at: p.tok.start}
	if err := p.advance(); err != nil {
		return nil, err
	}
	to, err := p.expression(0)
	return &rangeNode{at, from, to}, err
}

// object reads on after "{".
func (p *parser) object(t token) (group, error) {
	g := group{at: t.start}
	if p.tok.is("}") {
		return g, p.advance()
	}
	err := p.list(func() error {
		key, err := p.expression(0)
		if err != nil {
			return err
		}
		if err := p.expect(":"); err != nil {
			return err
		}
		value, err := p.expression(0)
		g.pairs = append(g.pairs, pair{key, value})
		return err
	})
	if err != nil {
		return g, err
	}
	return g, p.expect("}")
}

// list reads items with commas between them.
func (p *parser) list(item func() error) error {
	for {
		if err := item(); err != nil || !p.tok.is(",") {
			return err
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}
