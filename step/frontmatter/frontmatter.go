// Package frontmatter splits the text of an agent's answer into a leading block
// of YAML and the rest. It knows no schema.
package frontmatter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// ErrNone means that the text does not begin with a block.
var ErrNone = errors.New("no frontmatter block")

// Error is what is wrong inside of a block.
type Error struct {
	Line    int    // of the text, from 1
	Text    string // the line; "" if it does not matter
	Message string
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return fmt.Sprintf("line %d (%s): %s", e.Line, e.Text, e.Message)
}

// Answer is a text in two parts.
type Answer struct {
	Fields map[string]any // never nil
	Body   string         // with LF line ends, without blank lines before
}

// bounds of a block: it holds the results of a role, not its work.
func bounds() yamldoc.Bounds {
	return yamldoc.Bounds{Bytes: 256 << 10, Depth: 32, Aliases: 16, Nodes: 10_000}
}

// Block is the text between a line "---" and the next one.
type Block struct {
	Answer
	Err   error // an *Error: it is no mapping, or never closed
	First bool  // the text begins with it
	Keyed bool  // it begins with a field; if not, the lines are rules around a text
	Line  int   // of its opening line, from 1
	text  string
}

// Parse reads a text that begins with a block, tolerating what models put around it: thoughts in
// <think>, invisible characters and white space before, CR LF, one code fence around the block or the
// whole. It returns ErrNone, or an *Error.
func Parse(text string) (Answer, error) {
	for b := range split(text) {
		if b.First {
			return b.Answer, b.Err
		}
		break
	}
	return Answer{}, ErrNone
}

// maxBlocks bounds the blocks that are read. A text with more consists of documents, and only the
// block at its beginning counts.
const maxBlocks = 64

// Blocks returns everything in a text that may be its block, in order: what it begins with, and what
// begins with a field and is in no code fence. One may begin with the line that ends another.
func Blocks(text string) []Block {
	var blocks []Block
	for b := range split(text) {
		if len(blocks) == maxBlocks {
			return slices.DeleteFunc(blocks, func(b Block) bool { return !b.First })
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// Mentions reports whether the block has a field that known accepts. In a block that is not valid YAML
// it looks at how lines begin.
func (b Block) Mentions(known func(field string) bool) bool {
	for line := range strings.Lines(b.text) {
		if key, ok := keyOf(line); ok && line[0] != ' ' && known(key) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(b.Fields)), known)
}

// read reads the fields.
func (b Block) read() (map[string]any, error) {
	src := b.padded()
	doc, err := yamldoc.ParseAnswer(src, bounds())
	if err != nil {
		return nil, inLine(err, src)
	}
	if bad := doc.Root.Rounded(); bad != nil {
		return nil, inLine(bad, src)
	}
	fields, ok := doc.Root.Value().(map[string]any)
	if !ok && doc.Root.Value() != nil {
		err := &yamldoc.Error{Pos: doc.Root.Pos, Message: "the block must consist of lines 'field: value'"}
		return nil, inLine(err, src)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	return fields, nil
}

// padded is the block behind as many empty lines as there are lines before it,
// so that the places in it are those in the text. Nobody minds a wrong number
// behind a flood of empty lines, which the YAML reader would refuse.
func (b Block) padded() []byte {
	const most = 500
	return []byte(strings.Repeat("\n", min(b.Line, most)) + b.text)
}

// inLine makes an error of the YAML reader one with its line.
func inLine(err error, src []byte) error {
	var bad *yamldoc.Error
	if !errors.As(err, &bad) {
		return err
	}
	return &Error{bad.Pos.Line, plaintext.Short(strings.TrimSpace(yamldoc.Line(src, bad.Pos.Line)), 80), bad.Message}
}
