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
	"fmt"
	"strings"
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
