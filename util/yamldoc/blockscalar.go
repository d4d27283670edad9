package yamldoc

import (
	"strings"

	"github.com/goccy/go-yaml/token"
)

// block reads a block scalar: its header, and its lines as they are. What they
// mean depends on the indentation of the parent ([blockText]).
func (l *lexer) block(t *token.Token) error {
	line := l.text[l.at : l.at+strings.IndexByte(l.text[l.at:], '\n')]
	if !strings.HasPrefix(line, t.Value) {
		return l.lost()
	}
	if !isHeader(t.Value) {
		return l.fail(badHeader)
	}
	out := tok{kind: tokBlock, pos: l.pos, text: t.Value}
	l.advance(len(t.Value))
	if rest := strings.TrimLeft(line[len(t.Value):], " \t"); rest != "" && rest[0] != '#' {
		return l.fail("nothing but a comment can follow '|' or '>' on its line")
	}
	l.advance(len(line) - len(t.Value) + 1)
	for len(l.raw) > 0 && l.raw[0].Type == token.CommentType && l.raw[0].Position.Line == out.pos.Line {
		l.raw = l.raw[1:]
	}
	if len(l.raw) > 0 && l.raw[0].Type == token.StringType {
		end := l.match(l.raw[0].Value)
		if end < 0 {
			return l.lost()
		}
		if end > l.at {
			end += strings.IndexByte(l.text[end:], '\n') + 1
		}
		end += blankLines(l.text[end:])
		out.body = l.text[l.at:end]
		l.raw = l.raw[1:]
		l.advance(len(out.body))
	}
	l.add(out)
	return nil
}

// blankLines returns the length of the blank lines at the start of s.
func blankLines(s string) int {
	n := 0
	for line := range strings.Lines(s) {
		if strings.Trim(line, " \t\n") != "" {
			break
		}
		n += len(line)
	}
	return n
}

// blockText decodes a block scalar under a parent in the given column.
func blockText(t tok, parent int) (string, error) {
	indent, chomp := blockHeader(t.text, parent)
	lines, err := unindent(t, indent)
	if err != nil {
		return "", err
	}
	kept := len(lines)
	for kept > 0 && lines[kept-1] == "" {
		kept--
	}
	text, trailing := strings.Join(lines[:kept], "\n"), len(lines)-kept
	if t.text[0] == '>' {
		text = foldBlock(lines[:kept])
	}
	switch {
	case chomp == '+' && kept > 0:
		return text + strings.Repeat("\n", trailing+1), nil
	case chomp == '+':
		return strings.Repeat("\n", trailing), nil
	case chomp == '-' || kept == 0:
		return text, nil
	}
	return text + "\n", nil
}

// unindent returns the lines of a block scalar without their indentation, which
// is that of the first line if it is not given (-1). Lines of only white space
// may be shorter.
func unindent(t tok, indent int) ([]string, error) {
	if t.body == "" {
		return nil, nil
	}
	lines := strings.Split(strings.TrimSuffix(t.body, "\n"), "\n")
	blank := 0 // the widest of the blank lines before the first one
	for i, line := range lines {
		body := strings.TrimLeft(line, " ")
		at := len(line) - len(body)
		switch {
		case indent >= 0:
		case body == "":
			blank = max(blank, at)
		case blank > at: // YAML 1.2, 8.1.1.1: else the text would not be what it looks like
			return nil, &Error{Pos: Pos{t.pos.Line + 1 + i, at + 1}, Message: "an empty line before this has more spaces than it; take them out"}
		default:
			indent = at
		}
		switch {
		case indent >= 0 && at >= indent:
			lines[i] = line[indent:]
		case strings.TrimLeft(body, "\t") == "":
			lines[i] = ""
		default:
			return nil, &Error{Pos: Pos{t.pos.Line + 1 + i, at + 1}, Message: "this line is indented less than the first one of the block"}
		}
	}
	return lines, nil
}

const badHeader = "'|' or '>' can be followed by '-' or '+' and one digit, then the text begins on the next line; if this is text, put it in quotes"

// isHeader matches [|>]([+-]?[1-9]?|[1-9][+-]) .
func isHeader(s string) bool {
	signs, digits := 0, 0
	for _, c := range s[1:] {
		switch {
		case c == '+' || c == '-':
			signs++
		case c >= '1' && c <= '9':
			digits++
		default:
			return false
		}
	}
	return signs <= 1 && digits <= 1
}

// blockHeader reads a header such as "|2-". The indentation is in characters
// from the line's start, or -1 if it is that of the first line.
func blockHeader(header string, parent int) (indent int, chomp byte) {
	indent = -1
	for i := 1; i < len(header); i++ {
		switch c := header[i]; {
		case c == '+' || c == '-':
			chomp = c
		case c >= '1' && c <= '9':
			indent = max(parent-1, 0) + int(c-'0')
		}
	}
	return indent, chomp
}

// foldBlock joins lines as '>' does: a line break between two lines of text is
// a space, blank lines are line breaks, and lines that are indented more keep
// theirs.
func foldBlock(lines []string) string {
	var b strings.Builder
	blanks := 0
	started, wasSpaced := false, false
	for _, line := range lines {
		if line == "" {
			blanks++
			continue
		}
		spaced := line[0] == ' ' || line[0] == '\t'
		switch {
		case !started:
			b.WriteString(strings.Repeat("\n", blanks))
		case spaced || wasSpaced:
			b.WriteString(strings.Repeat("\n", blanks+1))
		case blanks == 0:
			b.WriteByte(' ')
		default:
			b.WriteString(strings.Repeat("\n", blanks))
		}
		b.WriteString(line)
		started, wasSpaced, blanks = true, spaced, 0
	}
	return b.String()
}
