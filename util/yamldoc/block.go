package yamldoc

// node reads the value of a parent that begins in the given column. Under a
// key, the dashes of a list may stand in the key's own column. A value that is
// not there is null.
func (p *builder) node(parent int, underKey bool, depth int) (*Node, error) {
	props, err := p.properties(parent)
	if err != nil {
		return nil, err
	}
	t := p.peek()
	belongs := t.pos.Column > parent || underKey && t.kind == tokDash && t.pos.Column == parent && !p.sameLine()
	isList, isMap := t.kind == tokDash, t.kind == tokQuestion || p.atKey()
	var n *Node
	switch {
	case t.endsDocument() || !belongs:
		n, err = p.empty(props)
	case isList || isMap:
		if err := p.checkPlace(underKey, isList, props); err != nil {
			return nil, err
		}
		n, err = p.collection(isList, depth, props)
	case t.kind == tokAlias:
		return p.aliasLine(depth, props)
	default:
		n, err = p.inline(parent, depth, props)
	}
	if err != nil {
		return nil, err
	}
	return p.finish(n, props)
}

// endsDocument reports whether nothing of the document comes after t.
func (t tok) endsDocument() bool {
	return t.kind == tokEnd || t.kind == tokDocStart || t.kind == tokDocEnd || t.kind == tokDirective
}

// atKey reports whether a scalar with its colon comes next.
func (p *builder) atKey() bool {
	switch t := p.peek(); t.kind {
	case tokMerge:
		return true
	case tokPlain, tokQuoted, tokAlias:
		colon := p.toks[1] // there is one: a scalar is not the end
		return colon.kind == tokColon && colon.pos.Line == t.end
	}
	return false
}

// checkPlace refuses a block collection that begins in the middle of a line,
// except behind a dash.
func (p *builder) checkPlace(underKey, isList bool, props properties) error {
	switch {
	case !p.sameLine() || p.last.kind == tokDash:
		return nil
	case props.any():
		return p.fail("an anchor or a tag for a whole list or mapping must stand on the line before it; on a key it is not supported")
	case p.last.kind == tokDocStart:
		return p.fail("only a single value can stand on the line of '---'")
	case isList && underKey:
		return p.fail("a list with dashes must begin on a new line")
	case underKey:
		return p.fail("a second 'key:' on one line; put the value in quotes, or begin a new line")
	}
	return nil
}

func (p *builder) collection(isList bool, depth int, props properties) (*Node, error) {
	if err := p.deeper(depth); err != nil {
		return nil, err
	}
	n := &Node{Kind: Mapping, Pos: p.peek().pos}
	if isList {
		n.Kind = Sequence
	}
	if err := p.tagCollection(n, props.tag); err != nil {
		return nil, err
	}
	if isList {
		return n, p.list(n, depth)
	}
	return n, p.mapping(n, depth)
}

func (p *builder) list(n *Node, depth int) error {
	for p.peek().kind == tokDash && p.peek().pos.Column == n.Pos.Column {
		p.next()
		item, err := p.node(n.Pos.Column, false, depth+1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
	if t := p.peek(); t.pos.Column > n.Pos.Column && !t.endsDocument() {
		return p.fail("this is indented deeper than the list that it follows")
	}
	return nil
}

func (p *builder) mapping(n *Node, depth int) error {
	keys := keySet{}
	for {
		t := p.peek()
		if t.endsDocument() || t.pos.Column < n.Pos.Column {
			return nil
		}
		if t.pos.Column > n.Pos.Column {
			return p.fail("this begins in column %d, but the keys before it in column %d", t.pos.Column, n.Pos.Column)
		}
		if t.kind == tokDash && len(n.Entries) > 0 {
			return nil // of a list that holds this mapping, or an error there
		}
		short := t.kind != tokQuestion
		e, hasValue, err := p.key(n.Pos.Column)
		if err != nil {
			return err
		}
		if err := keys.add(e); err != nil {
			return err
		}
		e.Value = &Node{Pos: e.Pos, size: 1}
		if hasValue {
			if e.Value, err = p.node(n.Pos.Column, short, depth+1); err != nil {
				return err
			}
		}
		n.Entries = append(n.Entries, e)
	}
}

// inline reads a value that is not a block collection, to the end of its line.
func (p *builder) inline(parent, depth int, props properties) (*Node, error) {
	n, err := p.flow(parent, depth, props)
	if err != nil {
		return nil, err
	}
	return n, p.wantLineEnd()
}

func (p *builder) aliasLine(depth int, props properties) (*Node, error) {
	if props.any() {
		return nil, p.fail("an alias cannot have an anchor or a tag")
	}
	n, err := p.alias(depth)
	if err != nil {
		return nil, err
	}
	return n, p.wantLineEnd()
}

// wantLineEnd refuses more on the line of a complete value.
func (p *builder) wantLineEnd() error {
	t := p.peek()
	if t.kind == tokEnd || !p.sameLine() {
		return nil
	}
	if t.kind == tokColon {
		return p.fail("a key must be a single word or text, not a list or a mapping")
	}
	return p.fail("the value before this is complete; if both are one text, put all of it in quotes")
}
