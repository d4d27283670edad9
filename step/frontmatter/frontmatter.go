// Package frontmatter splits the text of an agent's answer into a leading block
// of YAML and the rest. It knows no schema.
package frontmatter

import (
	"errors"
	"fmt"
	"iter"
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

const marker = "---"

// invisible lists characters without a width that some models put before their first line.
const invisible = "\ufeff\u200b\u200c\u200d\u2060\u00ad"

// isMarker reports whether a line is "---", with nothing but white space behind it.
func isMarker(line string) bool {
	return strings.TrimRight(strings.TrimLeft(line, invisible), invisible+" \t") == marker
}

// lead returns the lines of a text without a prefix that may precede its block: white space, invisible
// characters, thoughts in <think>. It also returns how many lines that were.
func lead(text string) (lines []string, skipped int) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest := strings.TrimLeft(text, invisible+" \t\r\n")
	for _, tag := range []string{"think", "thinking"} {
		if thought, ok := strings.CutPrefix(rest, "<"+tag+">"); ok {
			if _, after, closed := strings.Cut(thought, "</"+tag+">"); closed {
				rest = strings.TrimLeft(after, invisible+" \t\r\n")
			}
		}
	}
	return strings.Split(rest, "\n"), strings.Count(text[:len(text)-len(rest)], "\n")
}

// split finds the blocks of a text that are in no code fence, and the one that the text begins
// with, around which a fence is tolerated. Two can share a line: what closes one may open the next.
func split(text string) iter.Seq[Block] {
	return func(yield func(Block) bool) {
		lines, skipped := lead(text)
		first, fence := opening(lines)
		for i := first; i < len(lines); i++ {
			if !isMarker(lines[i]) || fence != "" && i > first {
				fence = fenceBehind(lines[i], fence)
				continue
			}
			end := i + 1 + slices.IndexFunc(lines[i+1:], isMarker)
			b := Block{First: i == first, Line: skipped + i + 1}
			if end == i {
				const unclosed = "the block is never closed; a line with only --- must follow the last field"
				b.Err = &Error{Line: b.Line, Message: unclosed}
			} else {
				b.text = strings.Join(lines[i+1:end], "\n")
				b.Keyed = isKeyed(b.text)
			}
			if !b.First && !b.Keyed {
				continue
			}
			if b.Err == nil {
				if b.Fields, b.Err = b.read(); b.Err == nil {
					b.Body = body(lines[end+1:], fence)
				}
			}
			if !yield(b) {
				return
			}
			if b.Keyed {
				i = end - 1 // what is in a block opens no fence
			}
		}
	}
}

// opening returns the index of the first line and the fence that the line before it opens around
// a block, "" if there is none.
func opening(lines []string) (first int, fence string) {
	if fence = fenceOf(lines[0]); fence != "" {
		if first = 1 + blanks(lines[1:]); first < len(lines) && isMarker(lines[first]) {
			return first, fence
		}
	}
	return 0, ""
}

// fenceBehind returns the fence that is open behind a line, if fence is before it.
func fenceBehind(line, fence string) string {
	line = strings.TrimLeft(line, " ")
	switch {
	case fence == "":
		return fenceOf(line)
	case closes(line, fence):
		return ""
	}
	return fence
}

// isKeyed reports whether what stands between two markers is meant as fields: it begins with one, and
// the second marker is in no code fence.
func isKeyed(block string) bool {
	begins, fence := "", ""
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		fence = fenceBehind(line, fence)
		if begins == "" && !strings.HasPrefix(line, "#") {
			begins = line
		}
	}
	_, ok := keyOf(begins)
	return fence == "" && (ok || strings.HasPrefix(begins, "{"))
}

// keyOf returns the key that a line begins with.
func keyOf(line string) (string, bool) {
	for i, r := range line {
		if r == ':' && (i+1 == len(line) || strings.IndexByte(" \t\n", line[i+1]) >= 0) {
			return strings.Trim(line[:i], `"' `), i > 0
		}
	}
	return "", false
}

// body joins the lines behind a block. If a fence was opened before the block,
// it is closed either right behind it or at the end of the text.
func body(lines []string, outer string) string {
	lines = lines[blanks(lines):]
	if outer != "" && len(lines) > 0 {
		last := len(lines) - 1
		for last > 0 && strings.TrimSpace(lines[last]) == "" {
			last--
		}
		switch {
		case closes(lines[0], outer):
			lines = lines[1:]
			lines = lines[blanks(lines):]
		case closes(lines[last], outer):
			lines = lines[:last]
		}
	}
	return strings.Join(lines, "\n")
}

// fenceOf returns the fence that a line opens, such as "```", or "".
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
			return line[:n]
		}
	}
	return ""
}

// closes reports whether a line closes a fence.
func closes(line, fence string) bool {
	line = strings.TrimRight(line, " \t")
	return strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == ""
}

// blanks counts the blank lines at the start.
func blanks(lines []string) int {
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			return i
		}
	}
	return len(lines)
}
