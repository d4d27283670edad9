package source

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/yamldoc"
)

// InTemplate converts a position in a template to one in the file. YAML can fold, indent and escape the text,
// but leaves braces alone: the n-th "{{" of the template is the n-th "{{" after the start of the text. If
// that fails, it returns the position of the whole text.
func (r *Report) InTemplate(n *yamldoc.Node, template string, line, column int) yamldoc.Pos {
	const open = "{{"
	start := 0
	for range line - 1 {
		start += strings.IndexByte(template[start:], '\n') + 1
	}
	start += byteOffset(template[start:], column)
	if !strings.HasPrefix(template[start:], open) {
		return n.Pos
	}
	return r.Nth(n.Pos, open, strings.Count(template[:start], open))
}

// Nth returns the position of the n-th occurrence, from 0, of a text at or after a position, or else that
// position.
func (r *Report) Nth(from yamldoc.Pos, text string, n int) yamldoc.Pos {
	skip := byteOffset(r.line(from.Line), from.Column)
	if strings.HasPrefix(r.line(from.Line)[skip:], "*") && !r.isPlain(from.Line) {
		return from // an alias: the text is elsewhere
	}
	for number := from.Line; number <= len(r.lines); number++ {
		line := r.line(number)
		count := strings.Count(line[skip:], text)
		if count <= n {
			n -= count
			skip = 0
			continue
		}
		at := skip + strings.Index(line[skip:], text)
		for range n {
			at += len(text)
			at += strings.Index(line[at:], text)
		}
		return yamldoc.Pos{Line: number, Column: utf8.RuneCountInString(line[:at]) + 1}
	}
	return from
}

// byteOffset returns the byte offset of a column, which counts characters from 1.
func byteOffset(line string, column int) int {
	for i := range line {
		if column--; column <= 0 {
			return i
		}
	}
	return len(line)
}

// InExpression converts an offset in a text to a position in the file. YAML changes a text's whitespace and
// adds quotes and backslashes, so this matches the other characters one by one. If that fails, or the text is
// too long to be handwritten, it returns the position of the whole text.
func (r *Report) InExpression(n *yamldoc.Node, text string, offset int) yamldoc.Pos {
	const longest = 4000
	begin := n.Pos
	if len(text) > longest || len(r.line(begin.Line)) > 2*longest {
		return begin
	}
	at := begin
	if !r.isPlain(begin.Line) {
		rest := r.line(begin.Line)[byteOffset(r.line(begin.Line), begin.Column):]
		switch {
		case strings.HasPrefix(rest, "|"), strings.HasPrefix(rest, ">"):
			at = yamldoc.Pos{Line: at.Line + 1, Column: 1}
		case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, "'"):
			at.Column++
		}
	}
	for i, want := range text {
		if unicode.IsSpace(want) && i < offset {
			continue
		}
		found, ok := r.nextVisible(at, want)
		if !ok {
			return begin
		}
		if i >= offset {
			return found
		}
		at = yamldoc.Pos{Line: found.Line, Column: found.Column + 1}
	}
	return yamldoc.Pos{Line: at.Line, Column: at.Column - 1} // past the end: the last character
}

// nextVisible returns the position of the next character, which must be want, skipping whitespace and the
// marks that escape a quote or a line end in YAML.
func (r *Report) nextVisible(at yamldoc.Pos, want rune) (yamldoc.Pos, bool) {
	for number := at.Line; number <= len(r.lines); number++ {
		line := r.line(number)
		column := 1
		if number == at.Line {
			column = at.Column
		}
		for i, c := range line[byteOffset(line, column):] {
			switch {
			case c == want:
				return yamldoc.Pos{Line: number, Column: column + utf8.RuneCountInString(line[byteOffset(line, column):][:i])}, true
			case unicode.IsSpace(c), c == '\\', c == '\'':
			default:
				return at, unicode.IsSpace(want)
			}
		}
	}
	return at, false
}
