package syntax

import "fmt"

// prefix reads what begins with a token that stands where an operand should.
func (p *parser) prefix(t token) (Node, error) {
	at := Common{At: t.start}
	switch t.kind {
	case endToken:
		if p.unfinished < 0 {
			p.unfinished = t.start
		}
		return &Const{Common: at}, nil
	case nameToken:
		if !t.quoted && (t.text == "function" || t.text == "λ") && p.tok.is("(") {
			return p.lambda(t)
		}
		return newName(t), nil
	case variableToken:
		return &Variable{Common: at, Name: t.text}, nil
	case stringToken:
		return &String{Common: at, Text: t.text}, nil
	case numberToken:
		return &Number{Common: at, Value: t.number}, nil
	case constToken:
		return newConst(t), nil
	}
	return p.prefixOperator(t)
}

func (p *parser) prefixOperator(t token) (Node, error) {
	at := Common{At: t.start}
	switch t.text {
	case "and", "or", "in": // fields may be called so
		return newName(t), nil
	case "-":
		return p.negation(t)
	case "*":
		return &Wildcard{at}, nil
	case "**":
		return &Descendants{at}, nil
	case "(":
		return p.block(t)
	case "[":
		return p.array(t)
	case "{":
		g, err := p.object(t)
		return &Object{at, g}, err
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

func newName(t token) Node {
	at := Common{At: t.start}
	return &Path{Common: at, Steps: []Node{&Name{Common: at, Name: t.text}}}
}

func newConst(t token) Node {
	n := &Const{Common: Common{At: t.start}}
	if t.text != "null" {
		n.Value = t.text == "true"
	}
	return n
}

func (p *parser) negation(t token) (Node, error) {
	operand, err := p.expression(70)
	if err != nil {
		return nil, err
	}
	if n, ok := operand.(*Number); ok {
		n.Value, n.At = -n.Value, t.start
		return n, nil
	}
	return &Negate{Common{At: t.start}, operand}, nil
}

// block reads on after "(": expressions with semicolons between them.
func (p *parser) block(t token) (Node, error) {
	b := &Block{Common: Common{At: t.start}}
	for !p.tok.is(")") {
		n, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		b.Exprs = append(b.Exprs, n)
		b.whole = b.whole || BeginsWhole(n)
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
func (p *parser) array(t token) (Node, error) {
	a := &Array{Common: Common{At: t.start}}
	if p.tok.is("]") {
		return a, p.advance()
	}
	err := p.list(func() error {
		item, err := p.expression(0)
		if err == nil && p.tok.is("..") {
			item, err = p.rangeFrom(item)
		}
		a.Items = append(a.Items, item)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, p.expect("]")
}

func (p *parser) rangeFrom(from Node) (Node, error) {
	at := Common{At: p.tok.start}
	if err := p.advance(); err != nil {
		return nil, err
	}
	to, err := p.expression(0)
	return &Range{at, from, to}, err
}

// object reads on after "{".
func (p *parser) object(t token) (Group, error) {
	g := Group{At: t.start}
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
		g.Pairs = append(g.Pairs, Pair{key, value})
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
