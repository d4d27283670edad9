// Package yamldoc reads YAML that strangers wrote: YAML 1.2 core typing,
// positions for every value, and bounds that are checked before the library
// (goccy/go-yaml) sees the text, because it has none.
//
// A value read here is a JSON value: nil, bool, int64, float64, string, []any,
// map[string]any. Whole numbers within ±(2^53−1) are int64, all others float64;
// NaN and infinities are errors, as are duplicate and merge keys, unknown tags,
// a second document, and anchors beyond the bounds.
package yamldoc

// Bounds limit what is read. The zero value is [DefaultBounds].
type Bounds struct {
	Bytes   int // of the text
	Depth   int // of nesting, flow and block
	Aliases int
	Nodes   int // values after aliases are expanded
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

// Node is a value with its place.
type Node struct {
	Kind    Kind
	Tag     string  // a local tag such as "!include", else ""
	Scalar  any     // nil, bool, int64, float64, string
	Text    string  // the scalar as written, unquoted
	Entries []Entry // of a mapping, in the order written
	Items   []*Node // of a sequence
	Pos     Pos
}

// Entry is a key with its value.
type Entry struct {
	Key   string
	Pos   Pos // of the key
	Value *Node
}

// Error is a problem at a place.
type Error struct {
	Pos     Pos
	Message string
}

func (e *Error) Error() string { panic("unwritten") }

// Parse reads exactly one document. An empty text is a document with a null
// root. Every error is an *Error.
func Parse(src []byte, b Bounds) (*Doc, error) { panic("unwritten") }

// Value is the JSON value of a node.
func (n *Node) Value() any { panic("unwritten") }

// Get returns the value of a key of a mapping, nil if there is none.
func (n *Node) Get(key string) *Node { panic("unwritten") }

// Line returns the text of a line, from 1, for excerpts.
func (d *Doc) Line(n int) string { panic("unwritten") }
