// Package yamldoc parses untrusted YAML: with the types of the YAML 1.2 core schema, positions for every
// value, and bounds that are checked before the library (goccy/go-yaml), which has none, sees the text.
//
// A value is a JSON value: nil, bool, int64, float64, string, []any, map[string]any. Integers within
// ±(2^53−1) are int64, other numbers float64. Errors include NaN and infinities, duplicate and merge keys,
// tags that are neither local nor in the core schema, a second document, and anchors that exceed the bounds.
//
// Stages: guard.go rejects texts that are too expensive for the library's lexer; lex.go takes the library's
// tokens and locates each in the text; grammar.go checks them against the bounds, and rejects invalid
// sequences with clear messages; the library's parser determines the structure (structure.go), and build.go
// converts its tree to ours. Only edit.go lets the library parse a text, because that preserves comments.
//
// The package works around these defects of the library (v1.19.2):
//
//   - Its lexer drops a tab in a plain scalar, trailing spaces in quotes, and
//     the line breaks of a text that continues in a line with a dash; it accepts half
//     an escape; its positions are wrong after tags, tabs and comments.
//     The content of a scalar is therefore read from the text (scalar.go, plain.go,
//     blockscalar.go).
//   - For each key of a block mapping, its parser copies all later keys: 60,000
//     took 100 seconds and 14 GB. Each key is therefore passed as a list entry.
//   - It stores the path of keys for every node, and limits nesting only after
//     using the memory. It therefore gets no text, after the bounds are checked.
//   - For "a: !t" with the next key below, it takes that key as the value, and it
//     moves all tokens for every missing value. It therefore gets no anchors and
//     tags, and a token for each missing value.
//   - It accepts "{a:1}", "{[a]: 1}", "? a: b", keys over several lines and a ':'
//     without a key; grammar.go rejects them.
//   - It uses columns inside brackets, so it gets only increasing ones.
package yamldoc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/united-workforce/uwf/util/exactjson"
)

// Bounds limits the input. A zero field has its value in [DefaultBounds].
type Bounds struct {
	Bytes   int // of the text
	Depth   int // of nested collections, after expanding aliases
	Aliases int
	Nodes   int // values, after expanding aliases
}

// DefaultBounds returns bounds for a handwritten file.
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

// Pos is a position in a file, from 1; columns count characters.
type Pos struct{ Line, Column int }

// Doc is a parsed document.
type Doc struct {
	Root *Node
	src  []byte
}

// Kind is the kind of a node.
type Kind int

// The kinds.
const (
	Scalar Kind = iota
	Mapping
	Sequence
)

// Node is a value with its position. Aliases share nodes, so treat nodes as read-only.
type Node struct {
	Kind    Kind
	Tag     string  // a local tag such as "!include", or ""; the scalar is then its text
	Scalar  any     // nil, bool, int64, float64, string
	Text    string  // the scalar as written, unquoted
	Entries []Entry // of a mapping, in the order written
	Items   []*Node // of a sequence
	Pos     Pos

	size, height int // including descendants, for the bounds
}

// Entry is a key with its value. A key that is a number, true or null is converted to text as in JavaScript,
// as in the original: "1", "true" and "".
type Entry struct {
	Key   string
	Text  string // the key as written, unquoted
	Pos   Pos    // of the key
	Value *Node
}

// Error is a problem at a position. Message contains none of the text, which might be secret; Quote is the
// relevant part of the text, or "".
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

// Parse parses exactly one document. An empty text is a document with a null root. Every error is an *Error.
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

// Value returns the JSON value of a node. It shares nothing with the node.
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

// Get returns the value of a mapping's key, or nil.
func (n *Node) Get(key string) *Node {
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// Line returns a line, from 1, of a source that could not be parsed, or "".
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

// builder converts the library's tree to ours: values, keys, aliases and bounds.
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

// node converts a value after a key or dash in the given column.
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

// first returns the index of a node's first token.
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

// mapping converts keys and their values.
func (p *builder) mapping(pairs []*ast.MappingValueNode, t tok, depth int) (*Node, error) {
	n, err := p.collection(Mapping, t, depth)
	if err != nil {
		return nil, err
	}
	for j, pair := range pairs {
		i := pair.Key.GetToken().Position.Offset
		key := p.toks[i]
		if key.props.any() && (j > 0 || t.opens()) { // otherwise they belong to the mapping
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

// reserve declares an anchor before its value is known.
func (p *builder) reserve(t tok) error {
	name := t.props.anchor
	if name == "" {
		return nil
	}
	if outer, known := p.anchors[name]; known && outer == nil {
		return &Error{t.props.pos, "a value inside the anchored one repeats its anchor; give either another " +
			"name", "&" + name}
	}
	p.anchors[name] = nil
	return nil
}

// finish completes a node that starts with t.
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

// count charges values to the budget.
func (p *builder) count(t tok, values int) error {
	p.nodes += values
	if p.nodes > p.bounds.Nodes {
		return failAt(t, fmt.Sprintf("more than %d values, counting expanded aliases", p.bounds.Nodes))
	}
	return nil
}

// alias returns the node of its anchor with the alias's position.
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
		return nil, failAt(t, fmt.Sprintf("nested deeper than %d, counting the expanded alias", p.bounds.Depth))
	}
	n := *target
	n.Pos = t.pos
	return &n, p.count(t, n.size)
}

// unique rejects duplicate keys.
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

// keyText converts a key as JavaScript does. A number that JavaScript can't represent stays as written.
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
		// encoding/json formats numbers as JavaScript does.
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return t.text
}

// Rounded returns an error for an integer that would be rounded, or nil: an id must be passed on unchanged.
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
