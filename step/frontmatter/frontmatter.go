// Package frontmatter splits the text of an agent's answer into a leading block
// of YAML and the rest. It knows no schema.
package frontmatter

import (
	"errors"
	"fmt"
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

// Parse reads a text that begins with a line "---", tolerating what models put
// around it: a byte order mark, CR LF, white space before, one code fence
// around the block or the whole. It returns ErrNone, or an *Error.
func Parse(text string) (Answer, error) {
	s := split(text)
	if !s.found {
		return Answer{}, ErrNone
	}
	if !s.closed {
		return Answer{}, &Error{Line: s.line, Message: "the block is never closed; a line with only --- must follow the last field"}
	}
	src := s.padded()
	doc, err := yamldoc.Parse(src, bounds())
	if err != nil {
		return Answer{}, inLine(err, src)
	}
	if bad := doc.Root.Rounded(); bad != nil {
		return Answer{}, inLine(bad, src)
	}
	fields, ok := doc.Root.Value().(map[string]any)
	if !ok && doc.Root.Value() != nil {
		err := &yamldoc.Error{Pos: doc.Root.Pos, Message: "the block must consist of lines 'field: value'"}
		return Answer{}, inLine(err, src)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	return Answer{Fields: fields, Body: s.body}, nil
}

// padded is the block behind as many empty lines as there are lines before it,
// so that the places in it are those in the text. Nobody minds a wrong number
// behind a flood of empty lines, which the YAML reader would refuse.
func (s parts) padded() []byte {
	const most = 500
	return []byte(strings.Repeat("\n", min(s.line, most)) + s.block)
}

// inLine makes an error of the YAML reader one with its line.
func inLine(err error, src []byte) error {
	var bad *yamldoc.Error
	if !errors.As(err, &bad) {
		return err
	}
	return &Error{bad.Pos.Line, plaintext.Short(strings.TrimSpace(yamldoc.Line(src, bad.Pos.Line)), 80), bad.Message}
}
