package yamldoc

import (
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// builder makes our tree of the library's: values, keys, aliases and bounds.
type builder struct {
	toks    []tok
	bounds  Bounds
	nodes   int
	aliases int
	anchors map[string]*Node // nil while the node is being read
}

func build(toks []tok, b Bounds) (*Node, error) {
	toks, err := check(toks, b)
	if err != nil {
		return nil, err
	}
	root, err := structure(toks)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return &Node{Pos: Pos{1, 1}}, nil
	}
	p := &builder{toks: toks, bounds: b, anchors: map[string]*Node{}}
	return p.node(root, 0, 1)
}

// node reads a value under a key or dash in the given column.
func (p *builder) node(n ast.Node, parent, depth int) (*Node, error) {
	i := first(n)
	t := p.toks[i]
	if err := p.reserve(t); err != nil {
		return nil, err
	}
	var out *Node
	var err error
	switch n := n.(type) {
	case *ast.MappingNode:
		out, err = p.mapping(n.Values, t, depth)
	case *ast.SequenceNode:
		if t.kind == tokDash || t.kind == tokOpenSeq {
			out, err = p.list(n, t, depth)
			break
		}
		pairs := make([]*ast.MappingValueNode, len(n.Values)) // see theirs
		for j, entry := range n.Values {
			pairs[j] = entry.(*ast.MappingNode).Values[0]
		}
		out, err = p.mapping(pairs, t, depth)
	case *ast.NullNode: // a key in braces without a colon
		out = &Node{Pos: t.pos}
	default:
		if t.kind == tokAlias {
			return p.alias(t, depth)
		}
		out, err = p.leaf(t, parent)
	}
	if err != nil {
		return nil, err
	}
	return p.finish(out, t)
}

// first is the index of the token that a node begins with.
func first(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle {
		n = m.Values[0].Key
	}
	return n.GetToken().Position.Offset
}

func (p *builder) collection(kind Kind, t tok, depth int) (*Node, error) {
	n := &Node{Kind: kind, Pos: t.pos}
	if depth > p.bounds.Depth {
		return nil, failAt(t, fmt.Sprintf("nested deeper than %d", p.bounds.Depth))
	}
	return n, tagCollection(n, t)
}

// mapping reads keys and their values.
func (p *builder) mapping(pairs []*ast.MappingValueNode, t tok, depth int) (*Node, error) {
	n, err := p.collection(Mapping, t, depth)
	if err != nil {
		return nil, err
	}
	for j, pair := range pairs {
		i := pair.Key.GetToken().Position.Offset
		key := p.toks[i]
		if key.props.any() && (j > 0 || t.opens()) { // otherwise they are the mapping's
			return nil, failAt(key, "an anchor or a tag where a key is expected; a key cannot have one")
		}
		if key.kind == tokQuestion {
			key = p.toks[i+1]
		}
		value, err := p.node(pair.Value, n.Pos.Column, depth+1)
		if err != nil {
			return nil, err
		}
		n.Entries = append(n.Entries, Entry{Key: keyText(key), Text: key.text, Pos: key.pos, Value: value})
	}
	return n, unique(n.Entries)
}

func (p *builder) list(from *ast.SequenceNode, t tok, depth int) (*Node, error) {
	n, err := p.collection(Sequence, t, depth)
	if err != nil {
		return nil, err
	}
	for j, value := range from.Values {
		if j > 0 && !t.opens() {
			if dash := p.toks[from.Entries[j].Start.Position.Offset]; dash.props.any() {
				return nil, failAt(dash, "an anchor or a tag where a list entry is expected")
			}
		}
		item, err := p.node(value, n.Pos.Column, depth+1)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, item)
	}
	return n, nil
}

func (p *builder) leaf(t tok, parent int) (*Node, error) {
	switch t.kind {
	case tokMissing:
		return empty(t)
	case tokBlock:
		text, err := blockText(t, parent)
		if err != nil {
			return nil, err
		}
		return scalar(t, text)
	}
	return scalar(t, t.text)
}

// reserve makes an anchor known before its value is.
func (p *builder) reserve(t tok) error {
	name := t.props.anchor
	if name == "" {
		return nil
	}
	if outer, known := p.anchors[name]; known && outer == nil {
		return &Error{t.props.pos, "a value within the one of this anchor has the same anchor; give one of them another name", "&" + name}
	}
	p.anchors[name] = nil
	return nil
}

// finish completes a node that begins with t.
func (p *builder) finish(n *Node, t tok) (*Node, error) {
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
	if t.props.anchor != "" {
		p.anchors[t.props.anchor] = n
	}
	return n, p.count(t, 1)
}

// count takes values from the budget.
func (p *builder) count(t tok, values int) error {
	p.nodes += values
	if p.nodes > p.bounds.Nodes {
		return failAt(t, fmt.Sprintf("more than %d values, with what aliases stand for", p.bounds.Nodes))
	}
	return nil
}

// alias is the node of its anchor, but for the place.
func (p *builder) alias(t tok, depth int) (*Node, error) {
	target, known := p.anchors[t.text[1:]]
	p.aliases++
	switch {
	case !known:
		return nil, &Error{t.pos, "there is no anchor of this name before the alias", t.text}
	case target == nil:
		return nil, &Error{t.pos, "the alias stands within what it refers to", t.text}
	case p.aliases > p.bounds.Aliases:
		return nil, failAt(t, fmt.Sprintf("more than %d aliases", p.bounds.Aliases))
	case depth-1+target.height > p.bounds.Depth:
		return nil, failAt(t, fmt.Sprintf("nested deeper than %d, with what the alias stands for", p.bounds.Depth))
	}
	n := *target
	n.Pos = t.pos
	return &n, p.count(t, n.size)
}

// unique refuses keys that are there twice.
func unique(entries []Entry) error {
	lines := make(map[string]int, len(entries))
	for _, e := range entries {
		if line, ok := lines[e.Key]; ok {
			return &Error{e.Pos, fmt.Sprintf("this key is already in line %d", line), fmt.Sprintf("%q", e.Key)}
		}
		lines[e.Key] = e.Pos.Line
	}
	return nil
}

// keyText is what JavaScript makes of a key. A number that it cannot hold stays
// as it was written.
func keyText(t tok) string {
	if t.kind == tokQuoted {
		return t.text
	}
	switch v, msg := resolve(t.text); v := v.(type) {
	case nil:
		if msg == "" {
			return ""
		}
	case bool, int64, float64:
		// encoding/json writes numbers as JavaScript does.
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return t.text
}
