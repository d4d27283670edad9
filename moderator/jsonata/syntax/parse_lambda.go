package syntax

import (
	"fmt"
	"strings"
)

// lambda reads on after "function".
func (p *parser) lambda(t token) (Node, error) {
	n := &Lambda{Common: Common{At: t.start}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !p.tok.is(")") {
		if err := p.list(func() error { return p.parameter(n) }); err != nil {
			return nil, err
		}
	}
	closing := p.tok.start
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if p.tok.is("<") {
		if err := p.signature(n); err != nil {
			return nil, err
		}
	}
	if !p.tok.is("{") {
		e := p.fail(p.tok.start, "S0202", "{", fmt.Sprintf("the body of a function should come here in {…}, not %s", p.tok.shown(p.src)))
		if p.tok.kind == endToken {
			e.Code, e.Message = "S0203", "the function has no body"
			e.Pos = Position(p.src, closing)
		}
		e.Hint = "write function($x){$x + 1}"
		return nil, e
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var err error
	if n.Body, err = p.expression(0); err != nil {
		return nil, err
	}
	return n, p.expect("}")
}

func (p *parser) parameter(n *Lambda) error {
	if p.tok.kind != variableToken {
		e := p.fail(p.tok.start, "S0208", p.tok.text, fmt.Sprintf("parameter %d of a function must be a variable, not %s", len(n.Params)+1, p.tok.shown(p.src)))
		if p.tok.kind == nameToken {
			e.Hint = "write $" + Shorten(p.tok.text, MaxShown)
		}
		return e
	}
	n.Params = append(n.Params, p.tok.text)
	p.assigned[p.tok.text] = true
	return p.advance()
}

// signature reads <s-n?:b>, which is not made of tokens.
func (p *parser) signature(n *Lambda) error {
	start := p.tok.start
	length := strings.IndexByte(p.src[start:], '{')
	if length < 0 {
		length = len(p.src) - start
	}
	text := strings.TrimRight(p.src[start:start+length], spaces)
	if len(text) < 2 || text[len(text)-1] != '>' {
		return p.fail(start, "S0202", ">", "the signature is never closed with >")
	}
	params, at, err := ParseSignature(text[1 : len(text)-1])
	if err != "" {
		return p.fail(start+1+at, err, "", "the signature cannot be read here: it has a letter for each parameter, as in <s-n?:b>")
	}
	n.Signature = params
	p.at = start + len(text)
	return p.advance()
}
