// Package yamldoc reads YAML that strangers wrote: YAML 1.2 core typing,
// positions for every value, and bounds that are checked before the library
// (goccy/go-yaml) sees the text, because it has none.
//
// A value read here is a JSON value: nil, bool, int64, float64, string, []any,
// map[string]any. Whole numbers within ±(2^53−1) are int64, all others float64;
// NaN and infinities are errors, as are duplicate and merge keys, tags that are
// neither local nor of the core schema, a second document, and anchors beyond
// the bounds.
//
// How it works: guard.go refuses what would cost the library's lexer too much;
// lex.go takes the library's tokens and finds each one again in the text;
// grammar.go goes over them with the bounds, and says in plain words what cannot
// stand side by side; then the library's parser finds out what belongs to what
// (structure.go), and build.go makes our tree of its. Only edit.go lets it read a
// text, because it keeps comments.
//
// What the library (v1.19.2) gets wrong, and only that, is done here:
//
//   - Its lexer drops a tab within a plain scalar, trailing spaces in quotes, and
//     the line breaks of a text that goes on in a line with a dash; it takes half
//     an escape for a character; its places drift after tags, tabs and comments.
//     So the content of a scalar is read from the text (scalar.go, plain.go,
//     blockscalar.go).
//   - Its parser copies all later keys of a block mapping for each of them: 60,000
//     took 100 seconds and 14 GB. So a key comes to it as an entry of a list.
//   - It keeps the path of keys to every node, and has no limit on nesting before
//     it has spent the memory. So it gets no text, and the bounds come before it.
//   - For "a: !t" with the next key below, it takes that key as the value, and it
//     moves all tokens for every value that is missing. So it gets no anchors and
//     tags, and a token for each value that is missing.
//   - It accepts "{a:1}", "{[a]: 1}", "? a: b", keys over several lines and a ':'
//     that belongs to no key; grammar.go refuses them.
//   - It guesses within brackets by columns: it gets columns that only grow.
package yamldoc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/united-workforce/uwf/util/exactjson"
)

// Bounds limit what is read. A field that is zero has its value in [DefaultBounds].
type Bounds struct {
	Bytes   int // of the text
	Depth   int // of nesting, flow and block, after aliases are expanded
	Aliases int
	Nodes   int // values after aliases are expanded
}

// DefaultBounds are for a file that a person wrote.
func DefaultBounds() Bounds {
	return Bounds{Bytes: 1 << 20, Depth: 100, Aliases: 64, Nodes: 100_000}
}

func (b Bounds) orDefault() Bounds {
	d := DefaultBounds()
	return Bounds{
		Bytes: or(b.Bytes, d.Bytes), Depth: or(b.Depth, d.Depth),
		Aliases: or(b.Aliases, d.Aliases), Nodes: or(b.Nodes, d.Nodes),
	}
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// Pos is a place in a file, from 1; columns count characters.
type Pos struct{ Line, Column int }

// Doc is a parsed document.
type Doc struct {
	Root *Node
	src  []byte
}

// Kind is what a node is.
type Kind int

// The kinds.
const (
	Scalar Kind = iota
	Mapping
	Sequence
)

// Node is a value with its place. A node that an alias stands for is shared:
// treat nodes as read-only.
type Node struct {
	Kind    Kind
	Tag     string  // a local tag such as "!include", else ""; the scalar is then its text
	Scalar  any     // nil, bool, int64, float64, string
	Text    string  // the scalar as written, unquoted
	Entries []Entry // of a mapping, in the order written
	Items   []*Node // of a sequence
	Pos     Pos

	size, height int // with everything below, for the bounds
}

// Entry is a key with its value. A key that is written as a number, true or
// null is the text that JavaScript makes of it, as in the original: "1", "true"
// and "".
type Entry struct {
	Key   string
	Text  string // the key as written, unquoted
	Pos   Pos    // of the key
	Value *Node
}

// Error is a problem at a place. Message holds nothing of the text, which may
// be a secret; Quote is what of the text it is about, "" if that is plain.
type Error struct {
	Pos     Pos
	Message string
	Quote   string
}

func (e *Error) Error() string {
	msg := fmt.Sprintf("line %d, column %d: %s", e.Pos.Line, e.Pos.Column, e.Message)
	if e.Quote != "" {
		msg += ": " + e.Quote
	}
	return msg
}

// Parse reads exactly one document. An empty text is a document with a null
// root. Every error is an *Error.
func Parse(src []byte, b Bounds) (*Doc, error) { return parse(src, b, false) }

func parse(src []byte, b Bounds, answer bool) (*Doc, error) {
	b = b.orDefault()
	text, err := clean(src, b)
	if err != nil {
		return nil, err
	}
	if err := guard(text, b); err != nil {
		return nil, err
	}
	sign := ""
	if answer {
		text, sign = hideSigns(text)
	}
	tokens, err := lex(text, sign)
	if err != nil {
		return nil, err
	}
	root, err := build(tokens, b)
	if err != nil {
		return nil, err
	}
	return &Doc{Root: root, src: src}, nil
}

// Value is the JSON value of a node. It shares nothing with the node.
func (n *Node) Value() any {
	switch n.Kind {
	case Mapping:
		m := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			m[e.Key] = e.Value.Value()
		}
		return m
	case Sequence:
		s := make([]any, len(n.Items))
		for i, item := range n.Items {
			s[i] = item.Value()
		}
		return s
	}
	return n.Scalar
}

// Get returns the value of a key of a mapping, nil if there is none.
func (n *Node) Get(key string) *Node {
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// Line returns the text of a line, from 1, of a source that could not be
// parsed; "" if there is none.
func Line(src []byte, n int) string {
	rest := strings.TrimPrefix(string(src), "\ufeff")
	for range n - 1 {
		_, after, found := strings.Cut(rest, "\n")
		if !found {
			return ""
		}
		rest = after
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSuffix(line, "\r")
}

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
		return &Error{t.props.pos, "a value within the one of this anchor has the same anchor; give one of them another " +
			"name", "&" + name}
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

// Rounded finds a whole number that would be rounded, or nil: an id that somebody gives
// must be the one that is passed on.
func (n *Node) Rounded() *Error {
	if n == nil {
		return nil
	}
	if f, ok := n.Scalar.(float64); ok && f == math.Trunc(f) {
		if text := strings.TrimPrefix(n.Text, "+"); !exactjson.Keeps(text) {
			return &Error{Pos: n.Pos, Message: exactjson.NotKept(text)}
		}
	}
	for _, e := range n.Entries {
		if bad := e.Value.Rounded(); bad != nil {
			return bad
		}
	}
	for _, item := range n.Items {
		if bad := item.Rounded(); bad != nil {
			return bad
		}
	}
	return nil
}
