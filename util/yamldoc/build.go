package yamldoc

import "fmt"

// builder makes a tree of tokens. A column stands for an indentation; the
// document's own is 0.
type builder struct {
	toks    []tok // what is not yet read; the last is a tokEnd
	bounds  Bounds
	last    tok // the last one read
	nodes   int
	aliases int
	anchors map[string]*Node // nil while the node is being read
}

func build(toks []tok, b Bounds) (*Node, error) {
	p := &builder{toks: toks, bounds: b, anchors: map[string]*Node{}}
	if err := p.prologue(); err != nil {
		return nil, err
	}
	root, err := p.node(0, false, 1)
	if err != nil {
		return nil, err
	}
	return root, p.epilogue()
}

// prologue reads what may stand before the document.
func (p *builder) prologue() error {
	if p.peek().kind == tokDirective {
		p.next()
		if p.peek().kind != tokDocStart {
			return p.fail("a line '---' must follow the directive")
		}
	}
	if p.peek().kind == tokDocStart {
		p.next()
	}
	return nil
}

// epilogue makes sure that the document is all there is.
func (p *builder) epilogue() error {
	if p.peek().kind == tokDocEnd {
		p.next()
	}
	switch p.peek().kind {
	case tokEnd:
		return nil
	case tokDocStart, tokDocEnd, tokDirective:
		return p.fail("a second document begins here; only one is allowed")
	}
	return p.fail("this belongs to nothing before it; check the indentation and the quotes")
}

func (p *builder) peek() tok { return p.toks[0] }

// next takes a token; the one at the end stays.
func (p *builder) next() tok {
	p.last = p.toks[0]
	if len(p.toks) > 1 {
		p.toks = p.toks[1:]
	}
	return p.last
}

// sameLine reports whether the next token stands on the line of the last one.
func (p *builder) sameLine() bool { return p.peek().pos.Line == p.last.end }

func (p *builder) fail(format string, args ...any) error {
	return &Error{Pos: p.peek().pos, Message: fmt.Sprintf(format, args...)}
}

// failAbout is fail with a piece of the text.
func (p *builder) failAbout(quote, msg string) error {
	return &Error{p.peek().pos, msg, quote}
}

// deeper refuses a collection that would be nested too deep.
func (p *builder) deeper(depth int) error {
	if depth > p.bounds.Depth {
		return p.fail("nested deeper than %d", p.bounds.Depth)
	}
	return nil
}

// finish completes a node that has been read.
func (p *builder) finish(n *Node, props properties) (*Node, error) {
	n.size = 1
	for _, e := range n.Entries {
		n.size += e.Value.size
		n.height = max(n.height, e.Value.height+1)
	}
	for _, item := range n.Items {
		n.size += item.size
		n.height = max(n.height, item.height+1)
	}
	if n.Kind != Scalar && n.height == 0 {
		n.height = 1
	}
	if props.anchor != "" {
		p.anchors[props.anchor] = n
	}
	return n, p.count(1)
}

// count takes values from the budget.
func (p *builder) count(values int) error {
	p.nodes += values
	if p.nodes > p.bounds.Nodes {
		return &Error{Pos: p.last.pos, Message: fmt.Sprintf("more than %d values, with what aliases stand for", p.bounds.Nodes)}
	}
	return nil
}

// alias reads a reference to an anchor. The node is the anchor's, but for its
// place.
func (p *builder) alias(depth int) (*Node, error) {
	t := p.peek()
	name := t.text[1:]
	target, known := p.anchors[name]
	p.aliases++
	switch {
	case !known:
		return nil, p.failAbout(t.text, "there is no anchor of this name before the alias")
	case target == nil:
		return nil, p.failAbout(t.text, "the alias stands within what it refers to")
	case p.aliases > p.bounds.Aliases:
		return nil, p.fail("more than %d aliases", p.bounds.Aliases)
	case depth-1+target.height > p.bounds.Depth:
		return nil, p.fail("nested deeper than %d, with what the alias stands for", p.bounds.Depth)
	}
	p.next()
	n := *target
	n.Pos = t.pos
	return &n, p.count(n.size)
}

// properties are what may stand before a value.
type properties struct {
	anchor string // without its &
	tag    string // with its !
}

func (q properties) any() bool { return q.anchor != "" || q.tag != "" }

// properties reads an anchor and a tag, if they are indented deeper than the
// parent.
func (p *builder) properties(parent int) (properties, error) {
	var props properties
	for p.peek().pos.Column > parent {
		t := p.peek()
		switch {
		case t.kind == tokAnchor && props.anchor == "":
			props.anchor = t.text[1:]
			if outer, known := p.anchors[props.anchor]; known && outer == nil {
				return props, p.failAbout(t.text, "a value within the one of this anchor has the same anchor; give one of them another name")
			}
			p.anchors[props.anchor] = nil
		case t.kind == tokTag && props.tag == "":
			if err := p.checkTag(t.text); err != nil {
				return props, err
			}
			props.tag = t.text
		case t.kind == tokAnchor || t.kind == tokTag:
			return props, p.fail("a value can have one anchor and one tag")
		default:
			return props, nil
		}
		p.next()
	}
	return props, nil
}
