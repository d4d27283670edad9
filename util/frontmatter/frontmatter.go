// Package frontmatter splits the text of an agent's answer into a leading block
// of YAML and the rest. It knows no schema.
package frontmatter

import "errors"

// ErrNone means that the text does not begin with a block.
var ErrNone = errors.New("no frontmatter block")

// Answer is a text in two parts.
type Answer struct {
	Fields map[string]any // never nil
	Body   string
}

// Parse reads a text that begins with a line "---", tolerating what models put
// around it: a byte order mark, CR LF, blank lines before, one code fence
// around the block or the whole. It returns ErrNone, or an error that says what
// is wrong inside the block and in which line.
func Parse(text string) (Answer, error) { panic("unwritten") }
