package yamldoc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// clean checks the bytes of a text and returns it without a byte order mark,
// with LF line ends, and with one at its end, which is what the library reads
// best.
func clean(src []byte, b Bounds) (string, error) {
	if len(src) > b.Bytes {
		return "", &Error{Pos{1, 1}, fmt.Sprintf("the text has %d bytes, the limit is %d", len(src), b.Bytes)}
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	pos := Pos{1, 1}
	for i, r := range text {
		if msg := forbidden(text[i:], r); msg != "" {
			return "", &Error{pos, msg}
		}
		pos = pos.after(r)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// forbidden says why a character cannot stand in a YAML text.
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

// after is the place of what follows the character r at p.
func (p Pos) after(r rune) Pos {
	if r == '\n' {
		return Pos{p.Line + 1, 1}
	}
	return Pos{p.Line, p.Column + 1}
}

// lexerBudget bounds the work that the library's lexer can be made to do, in
// character visits; 5e8 are about a quarter of a second.
const lexerBudget = 250_000_000

// guard refuses texts on which the library's lexer needs quadratic time or much
// memory, before it sees them. It only guesses where quotes and block scalars
// are, so it refuses nothing that an honest file comes near; the limits proper
// are held while the tree is built.
func guard(text string, depth int) error {
	var g guardState
	for line := range strings.Lines(text) {
		g.line++
		if err := g.check(strings.TrimSuffix(line, "\n"), len(text), depth); err != nil {
			return err
		}
	}
	return nil
}

type guardState struct {
	line    int
	blank   int // blank lines just before this one
	cost    int
	flow    int  // open brackets
	quote   byte // the quote that we are in, or 0
	inBlock int  // least indentation of the block scalar that we are in, or -1 to learn it; 0: none
	header  int  // indentation of the line that began it
}

func (g *guardState) check(line string, size, depth int) error {
	body := strings.TrimLeft(line, " ")
	indent := len(line) - len(body)
	if body == "" {
		g.blank++
		// The lexer cuts blank lines off a block scalar one at a time, and
		// copies all of it each time.
		if 5*g.blank*size > lexerBudget {
			return g.refuse("too many blank lines in a row for a text of this size")
		}
		return nil
	}
	g.blank = 0
	// In double quotes, the lexer looks for the end of the line at every tab.
	g.cost += strings.Count(line, "\t") * len(line)
	// It also counts the characters of a run of '<' at every one of them.
	g.cost += longestRun(line, '<') * strings.Count(line, "<")
	if g.cost > lexerBudget {
		return g.refuse("too many tabs or '<' in long lines")
	}
	if g.skipsBlockScalar(indent) {
		return nil
	}
	if g.count(body) > depth {
		return g.refuse(fmt.Sprintf("nested deeper than %d", depth))
	}
	if g.flow == 0 && g.quote == 0 && isBlockHeader(body) {
		g.inBlock, g.header = -1, indent
	}
	return nil
}

func (g *guardState) refuse(msg string) error { return &Error{Pos{g.line, 1}, msg} }

// skipsBlockScalar reports whether a line belongs to a block scalar, whose
// brackets are only text.
func (g *guardState) skipsBlockScalar(indent int) bool {
	if g.inBlock == 0 {
		return false
	}
	if g.inBlock < 0 && indent > g.header {
		g.inBlock = indent
	}
	if g.inBlock > 0 && indent >= g.inBlock {
		return true
	}
	g.inBlock = 0
	return false
}

// count follows the brackets of a line and returns the deepest nesting that it
// reaches. Outside of brackets, one only opens where a value can begin, and so
// does a quote.
func (g *guardState) count(body string) int {
	deepest, entries := 0, 0
	begins, property := true, false // a value can begin here; within an anchor or tag
	for i := range len(body) {
		c := body[i]
		if g.quote != 0 {
			if c == g.quote && (c == '\'' || i == 0 || body[i-1] != '\\') {
				g.quote = 0
			}
			begins = false
			continue
		}
		switch {
		case c == ' ':
			begins, property = begins || property, false
			continue
		case c == '#' && (i == 0 || body[i-1] == ' '):
			return deepest
		case c == '[' || c == '{':
			if begins || g.flow > 0 {
				g.flow++
			}
		case c == ']' || c == '}':
			g.flow = max(0, g.flow-1)
		case begins && (c == '"' || c == '\''):
			g.quote = c
		case begins && (c == '-' || c == '?'):
			entries++
		}
		deepest = max(deepest, g.flow+entries)
		property = property || begins && (c == '&' || c == '!')
		begins = c == ':' || begins && (c == '-' || c == '?') || g.flow > 0 && strings.IndexByte("[{,", c) >= 0
	}
	return deepest
}

// isBlockHeader reports whether a line ends with the header of a block scalar.
func isBlockHeader(body string) bool {
	if i := strings.Index(body, " #"); i >= 0 {
		body = body[:i]
	}
	body = strings.TrimRight(body, " \t")
	body = strings.TrimRight(body, "+-0123456789")
	head, ok := strings.CutSuffix(body, "|")
	if !ok {
		head, ok = strings.CutSuffix(body, ">")
	}
	return ok && (head == "" || strings.HasSuffix(head, " "))
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
