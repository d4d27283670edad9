// Package yamldoc parses untrusted YAML: with the types of the YAML 1.2 core schema, positions for every
// value, and bounds on size, depth and aliases.
//
// A value is a JSON value: nil, bool, int64, float64, string, []any, map[string]any. Integers within
// ±(2^53−1) are int64, other numbers float64. Errors include NaN and infinities, duplicate and merge keys,
// keys that aren't a single line of text, tags that are neither local nor in the core schema, a second
// document, and anchors that exceed the bounds.
package yamldoc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

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
	text string
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

	size, height int  // including descendants, for the bounds
	from, to     int  // offsets, without an anchor and a tag
	flow         bool // in brackets
}

// Entry is a key with its value. A key that is a number, true or null is converted to text as in JavaScript,
// as in the original: "1", "true" and "".
type Entry struct {
	Key   string
	Text  string // the key as written, unquoted
	Pos   Pos    // of the key
	Value *Node

	from, after int // offsets of the key, and after its colon
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

// ParseAnswer is [Parse] for a value written by a model or by hand: a '#' directly followed by text is text,
// as in "note: Fixes #42" and "colour: #fff", where YAML has a comment. An ambiguous '#' is an error. "# "
// starts a comment.
func ParseAnswer(src []byte, b Bounds) (*Doc, error) { return parse(src, b, true) }

func parse(src []byte, b Bounds, answer bool) (*Doc, error) {
	b = b.orDefault()
	text, err := clean(src, b)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, pos: Pos{1, 1}, bounds: b, answer: answer, anchors: map[string]*Node{}}
	if root := p.document(); p.err == nil {
		return &Doc{root, text}, nil
	}
	return nil, p.err
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

// clean validates the bytes of a text and removes a byte order mark. It converts line endings to LF and adds
// one at the end.
func clean(src []byte, b Bounds) (string, error) {
	if len(src) > b.Bytes {
		return "", &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("the text has %d bytes; the limit is %d", len(src), b.Bytes)}
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	pos := Pos{1, 1}
	for i, r := range text {
		if msg := forbidden(text[i:], r); msg != "" {
			return "", &Error{Pos: pos, Message: msg}
		}
		pos = pos.after(r)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// forbidden explains why a character isn't allowed in YAML.
func forbidden(rest string, r rune) string {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(rest, "\ufffd"):
		return fmt.Sprintf("the byte 0x%02X is not UTF-8 text", rest[0])
	case r == '\t' || r == '\n':
		return ""
	case r < ' ' || r == 0x7f:
		return fmt.Sprintf("the control character U+%04X is not allowed; in double quotes it can be written as \\x%02X", r, r)
	case r == '\ufeff':
		return "a byte order mark is only allowed at the start of the text"
	}
	return ""
}

// after returns the position after the character r at p.
func (p Pos) after(r rune) Pos {
	if r == '\n' {
		return Pos{p.Line + 1, 1}
	}
	return Pos{p.Line, p.Column + 1}
}
