package yamldoc

import "fmt"

// flow reads a scalar or a collection in brackets.
func (p *builder) flow(parent, depth int, props properties) (*Node, error) {
	switch t := p.peek(); t.kind {
	case tokPlain, tokQuoted:
		return p.scalar(t, t.text, props)
	case tokBlock:
		text, err := blockText(t, parent)
		if err != nil {
			return nil, err
		}
		return p.scalar(t, text, props)
	case tokOpenSeq, tokOpenMap:
		return p.brackets(depth, props)
	case tokMerge:
		return nil, p.fail("merge keys (<<) are not supported; put '<<' in quotes if it is text")
	case tokColon:
		return nil, p.fail("there is no key before this ':'")
	}
	return nil, p.fail("there is no value before this; if it is text, put it in quotes")
}

// brackets reads a collection from its opening to its closing bracket.
func (p *builder) brackets(depth int, props properties) (*Node, error) {
	if err := p.deeper(depth); err != nil {
		return nil, err
	}
	open := p.next()
	n, closing := &Node{Kind: Sequence, Pos: open.pos}, tokCloseSeq
	if open.kind == tokOpenMap {
		n.Kind, closing = Mapping, tokCloseMap
	}
	if err := p.tagCollection(n, props.tag); err != nil {
		return nil, err
	}
	keys := keySet{}
	for i := 0; ; i++ {
		if i > 0 && p.peek().kind == tokComma {
			p.next()
		} else if i > 0 && p.peek().kind != closing {
			return nil, p.unclosed(open, "a ',' or the closing bracket is missing before this")
		}
		if p.peek().kind == closing {
			p.next()
			return n, nil
		}
		if err := p.flowEntry(n, keys, depth); err != nil {
			return nil, p.unclosed(open, err.Error(), err)
		}
	}
}

// unclosed reports a bracket that is never closed, if that is the trouble, and
// otherwise err or a problem at the next token.
func (p *builder) unclosed(open tok, msg string, err ...error) error {
	if p.peek().kind == tokEnd {
		return &Error{Pos: open.pos, Message: fmt.Sprintf("the bracket %s is never closed", open.text)}
	}
	if len(err) > 0 {
		return err[0]
	}
	return p.fail("%s", msg)
}

// flowEntry reads one entry of a list or mapping in brackets.
func (p *builder) flowEntry(n *Node, keys keySet, depth int) error {
	if n.Kind == Mapping {
		e, err := p.flowPair(depth)
		if err != nil {
			return err
		}
		n.Entries = append(n.Entries, e)
		return keys.add(e)
	}
	if !p.atFlowKey() {
		item, err := p.flowNode(depth + 1)
		n.Items = append(n.Items, item)
		return err
	}
	// "[a: 1]" is a list of one mapping with one key.
	if err := p.deeper(depth + 1); err != nil {
		return err
	}
	pair := &Node{Kind: Mapping, Pos: p.peek().pos}
	e, err := p.flowPair(depth + 1)
	if err != nil {
		return err
	}
	pair.Entries = []Entry{e}
	n.Items = append(n.Items, pair)
	_, err = p.finish(pair, properties{})
	return err
}

func (p *builder) atFlowKey() bool {
	switch p.peek().kind {
	case tokPlain, tokQuoted, tokAlias, tokMerge:
		return p.toks[1].kind == tokColon
	}
	return p.peek().kind == tokQuestion
}

// flowPair reads a key, and a value if there is a colon.
func (p *builder) flowPair(depth int) (Entry, error) {
	plain := p.peek().kind == tokPlain
	e, err := p.keyScalar()
	if err != nil {
		return e, err
	}
	e.Value = &Node{Pos: e.Pos, size: 1}
	if p.peek().kind != tokColon {
		return e, p.count(1)
	}
	if plain && p.peek().adjoins {
		return e, p.fail("within brackets, put a space after this ':', or put the whole text in quotes")
	}
	p.next()
	switch p.peek().kind {
	case tokComma, tokCloseMap, tokCloseSeq:
		return e, p.count(1)
	}
	e.Value, err = p.flowNode(depth + 1)
	return e, err
}

// flowNode reads a value within brackets.
func (p *builder) flowNode(depth int) (*Node, error) {
	props, err := p.properties(0)
	if err != nil {
		return nil, err
	}
	switch t := p.peek(); t.kind {
	case tokAlias:
		if props.any() {
			return nil, p.fail("an alias cannot have an anchor or a tag")
		}
		return p.alias(depth)
	case tokBlock:
		return nil, p.fail("a block after '|' or '>' cannot stand within brackets")
	case tokComma, tokCloseMap, tokCloseSeq:
		if props.any() {
			n, err := p.empty(props)
			if err != nil {
				return nil, err
			}
			return p.finish(n, props)
		}
	}
	n, err := p.flow(0, depth, props)
	if err != nil {
		return nil, err
	}
	return p.finish(n, props)
}
