// Package frontmatter splits an agent's answer into a leading YAML block and the rest. It is independent of
// any schema.
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

// ErrNone means that the text doesn't start with a block.
var ErrNone = errors.New("no frontmatter block")

// Error is a problem inside a block.
type Error struct {
	Line    int    // in the text, from 1
	Text    string // the line; "" if irrelevant
	Message string
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return fmt.Sprintf("line %d (%s): %s", e.Line, e.Text, e.Message)
}

// Answer is a text split into its block and body.
type Answer struct {
	Fields map[string]any // never nil
	Body   string         // with LF line endings, without leading blank lines
}

// bounds returns the limits of a block, which contains a role's results, not its work.
func bounds() yamldoc.Bounds {
	return yamldoc.Bounds{Bytes: 256 << 10, Depth: 32, Aliases: 16, Nodes: 10_000}
}

// Block is the text between a "---" line and the next one.
type Block struct {
	Answer
	Err   error // an *Error if it isn't a mapping, or is never closed
	First bool  // the text starts with it
	Keyed bool  // it starts with a field; otherwise the lines are rules around text
	Line  int   // of its opening line, from 1
	text  string
}

// Parse parses a text that starts with a block. It tolerates what models add around it: thoughts in <think>,
// leading invisible characters and whitespace, CRLF, and one code fence around the block or the whole text.
// It returns ErrNone or an *Error.
func Parse(text string) (Answer, error) {
	for b := range split(text, true) {
		if b.First {
			return b.Answer, b.Err
		}
		break
	}
	return Answer{}, ErrNone
}

// Body returns the body of a text that Parse accepts. It doesn't read the fields, which takes longest. ok is false if
// the text doesn't start with a block.
func Body(text string) (body string, ok bool) {
	for b := range split(text, false) {
		return b.Body, b.First && b.Err == nil
	}
	return "", false
}

// maxBlocks bounds the number of blocks. A text with more contains documents; only its leading block counts.
const maxBlocks = 64

// Blocks returns all possible blocks in a text, in order: the leading one, and those that start with a field
// and aren't in a code fence. The closing line of a block can also open the next one.
func Blocks(text string) []Block {
	var blocks []Block
	for b := range split(text, true) {
		if len(blocks) == maxBlocks {
			return slices.DeleteFunc(blocks, func(b Block) bool { return !b.First })
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// Mentions reports whether the block has a field accepted by known. If the block isn't valid YAML, it checks
// the beginnings of lines.
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

// padded returns the block after as many empty lines as precede it in the text, so that its positions are
// positions in the text. It limits the number of lines, which the YAML parser would otherwise reject;
// positions after that many empty lines are wrong but irrelevant.
func (b Block) padded() []byte {
	const most = 500
	return []byte(strings.Repeat("\n", min(b.Line, most)) + b.text)
}

// inLine adds the line to an error of the YAML parser.
func inLine(err error, src []byte) error {
	var bad *yamldoc.Error
	if !errors.As(err, &bad) {
		return err
	}
	return &Error{bad.Pos.Line, plaintext.Short(strings.TrimSpace(yamldoc.Line(src, bad.Pos.Line)), 80), bad.Message}
}

const marker = "---"

// invisible lists zero-width characters that some models write before their first line.
const invisible = "\ufeff\u200b\u200c\u200d\u2060\u00ad"

// isMarker reports whether a line is "---", with optional trailing whitespace.
func isMarker(line string) bool {
	return strings.TrimRight(strings.TrimLeft(line, invisible), invisible+" \t") == marker
}

// lead removes what can precede a block (whitespace, invisible characters, thoughts in <think>) and returns
// the remaining lines and the number of lines removed.
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

// split returns the blocks that aren't in a code fence, and the leading block, which can be inside one. Two
// blocks can share a line that closes one and opens the other. Their fields are optional.
func split(text string, fields bool) iter.Seq[Block] {
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
				const unclosed = "the block is not closed; a line with only --- must follow the last field"
				b.Err = &Error{Line: b.Line, Message: unclosed}
			} else {
				b.text = strings.Join(lines[i+1:end], "\n")
				b.Keyed = isKeyed(b.text)
			}
			if !b.First && !b.Keyed {
				continue
			}
			if b.Err == nil && fields {
				b.Fields, b.Err = b.read()
			}
			if b.Err == nil {
				b.Body = body(lines[end+1:], fence)
			}
			if !yield(b) {
				return
			}
			if b.Keyed {
				i = end - 1 // a block's content can't open a fence
			}
		}
	}
}

// opening returns the index of the first line, and the fence opened before it around a block, or "".
func opening(lines []string) (first int, fence string) {
	if fence = fenceOf(lines[0]); fence != "" {
		if first = 1 + blanks(lines[1:]); first < len(lines) && isMarker(lines[first]) {
			return first, fence
		}
	}
	return 0, ""
}

// fenceBehind returns the fence open after a line, given the fence open before it.
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

// isKeyed reports whether the text between two markers consists of fields: it starts with one, and the second
// marker isn't in a code fence.
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

// keyOf returns the key at the start of a line.
func keyOf(line string) (string, bool) {
	for i, r := range line {
		if r == ':' && (i+1 == len(line) || strings.IndexByte(" \t\n", line[i+1]) >= 0) {
			return strings.Trim(line[:i], `"' `), i > 0
		}
	}
	return "", false
}

// body joins the lines after a block. A fence opened before the block is closed either right after it or at
// the end of the text.
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

// fenceOf returns the fence opened by a line, such as "```", or "".
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
			return line[:n]
		}
	}
	return ""
}

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
