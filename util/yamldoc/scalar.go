package yamldoc

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// tok is a scalar or an alias.
type tok struct {
	kind     tokKind
	pos      Pos
	from, to int    // offsets
	end      int    // last line
	text     string // unquoted; of an alias: with its '*'
}

type tokKind int

const (
	tokNone tokKind = iota
	tokPlain
	tokQuoted
	tokBlock // a block scalar
	tokAlias
)

// token reads a scalar or an alias, the value of a key or dash in the column parent. within is [brackets]
// within them, otherwise "".
func (p *parser) token(parent int, within string) tok {
	t := p.here()
	switch {
	case p.at == len(p.text):
	case p.is(p.at, `"'`):
		t.kind = tokQuoted
		p.quoted(&t)
	case p.is(p.at, "*"):
		t.kind, t.text = tokAlias, "*"+p.name()
	case p.is(p.at, "|>"):
		if t.kind = tokBlock; within != "" {
			p.fail("a block after '|' or '>' is not allowed in brackets")
			return t
		}
		p.block(&t, parent)
		return t
	case p.is(p.at, "@`%"):
		p.fail(fmt.Sprintf("a value cannot start with %c; put it in quotes", p.text[p.at]))
	case p.is(p.at, ":") && p.is(p.at+1, white+within):
		p.fail(noKey)
	case p.is(p.at, ",]}") || p.is(p.at, "-?") && p.is(p.at+1, white+within):
		p.fail(noValue)
	default:
		t.kind = tokPlain
		p.plain(&t, parent, within)
	}
	t.to, t.end = p.at, p.pos.Line
	return t
}

// plain reads an unquoted scalar.
func (p *parser) plain(t *tok, parent int, within string) {
	p.take(p.run(within), false)
	for p.err == nil {
		t.to = p.at
		at, pos, line := p.at, p.pos, p.line
		p.move(len(p.text[p.at:]) - len(strings.TrimLeft(p.text[p.at:], white)))
		ends := p.pos.Line == pos.Line || p.ended() || p.is(p.at, "#")
		if ends || within == "" && p.column() <= parent || within != "" && p.run(within) == 0 {
			p.at, p.pos, p.line = at, pos, line
			break
		}
		if within == "" && p.tabbed(parent) {
			p.fail(noTab)
			return
		}
		p.take(p.run(within), false)
		if within == "" && p.colon("") {
			p.fail("text without quotes cannot contain ': ' or ' #'; check the indentation, or put the text in quotes")
		}
	}
	t.text = fold(p.text[t.from:t.to])
}

// run returns the length of the unquoted text up to the end of its line.
func (p *parser) run(within string) int {
	end := p.at
	for i := p.at; i < len(p.text) && p.text[i] != '\n'; i++ {
		switch c := p.text[i]; {
		case c == ' ' || c == '\t':
			continue
		case c == ':' && p.is(i+1, white+within), strings.IndexByte(within, c) >= 0:
			return end - p.at
		case c == '#' && p.is(i-1, white) && !p.isText(i):
			return end - p.at
		}
		end = i + 1
	}
	return end - p.at
}

// quoted reads a quoted scalar.
func (p *parser) quoted(t *tok) {
	quote := p.text[p.at]
	n, escaped := closing(p.text[p.at:], quote)
	if n < 0 {
		p.fail(fmt.Sprintf("unclosed quote %c", quote))
		return
	}
	inner := p.text[p.at+1 : p.at+n]
	switch {
	case quote == '\'':
		t.text = strings.ReplaceAll(foldQuoted(inner), "''", "'")
	case !escaped:
		t.text = foldQuoted(inner)
	default:
		text, bad, msg := unescape(inner)
		if msg != "" {
			p.move(1 + bad)
			p.fail(msg)
			return
		}
		t.text = text
	}
	p.take(n+1, true)
}

// closing returns the offset of the closing quote of s, which starts with a quote, and whether there are
// escapes before it.
func closing(s string, quote byte) (n int, escaped bool) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote == '"':
			escaped = true
			i++
		case s[i] == quote && quote == '\'' && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i, escaped
		}
	}
	return -1, escaped
}

// fold joins the lines of a plain scalar: one line break becomes a space, n+1 become n line breaks.
func fold(s string) string { return strings.Trim(foldQuoted(s), " \t") }

// foldQuoted is fold without trimming whitespace at both ends.
func foldQuoted(s string) string {
	if !strings.Contains(s, "\n") {
		return s
	}
	lines := strings.Split(s, "\n")
	var b strings.Builder
	b.WriteString(strings.TrimRight(lines[0], " \t"))
	breaks := 1
	for i, line := range lines[1:] {
		last := i == len(lines)-2
		line = strings.TrimLeft(line, " \t")
		if !last {
			line = strings.TrimRight(line, " \t")
		}
		if line == "" && !last {
			breaks++
			continue
		}
		b.WriteString(lineBreaks(breaks))
		b.WriteString(line)
		breaks = 1
	}
	return b.String()
}

func lineBreaks(n int) string {
	if n == 1 {
		return " "
	}
	return strings.Repeat("\n", n-1)
}

// unescape decodes the content of double quotes. On failure it returns the offset of the error and a message.
func unescape(s string) (text string, bad int, msg string) {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch s[i] {
		case '\\':
			n, msg := escape(&b, s[i:])
			if msg != "" {
				return "", i, msg
			}
			i += n
		case ' ', '\t', '\n':
			n := len(s[i:]) - len(strings.TrimLeft(s[i:], " \t\n"))
			white := s[i : i+n]
			if breaks := strings.Count(white, "\n"); breaks > 0 {
				white = lineBreaks(breaks)
			}
			b.WriteString(white)
			i += n
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String(), 0, ""
}

// escape decodes the escape at the start of s and returns its length.
func escape(b *strings.Builder, s string) (n int, msg string) {
	if s[1] == '\n' { // joins two lines; following blank lines are line breaks
		rest := strings.TrimLeft(s[2:], " \t\n")
		white := s[2 : len(s)-len(rest)]
		b.WriteString(strings.Repeat("\n", strings.Count(white, "\n")))
		return 2 + len(white), ""
	}
	if i := strings.IndexByte(`0abtnvfre "/\N_LP`+"\t", s[1]); i >= 0 {
		r := []rune("\x00\a\b\t\n\v\f\r\x1b \"/\\\u0085\u00a0\u2028\u2029\t")[i]
		b.WriteRune(r)
		return 2, ""
	}
	digits, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if !ok {
		r, _ := utf8.DecodeRuneInString(s[1:])
		return 0, fmt.Sprintf("\\%c is not an escape; for a backslash write \\\\ or use single quotes", r)
	}
	r, ok := hexRune(s[2:], digits)
	if !ok {
		return 0, fmt.Sprintf("\\%c needs %d hexadecimal digits", s[1], digits)
	}
	n = 2 + digits
	if utf16.IsSurrogate(r) && strings.HasPrefix(s[n:], `\u`) {
		low, _ := hexRune(s[n+2:], 4)
		n += 6
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			r = -1
		}
	}
	if !utf8.ValidRune(r) {
		return 0, "the escape is not a character"
	}
	b.WriteRune(r)
	return n, ""
}

func hexRune(s string, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	v, err := strconv.ParseUint(s[:digits], 16, 32)
	return rune(v), err == nil
}

// block reads a block scalar below a key or dash in the column parent.
func (p *parser) block(t *tok, parent int) {
	header := p.text[p.at : p.at+strings.IndexAny(p.text[p.at:], white)]
	rest := strings.TrimLeft(p.text[p.at+len(header):p.at+p.lineEnd()], " \t")
	comment := p.at + p.lineEnd() - len(rest)
	if !isHeader(header) || rest != "" && (rest[0] != '#' || p.isText(comment)) {
		p.fail(badHeader)
		return
	}
	indent, chomp := blockHeader(header, parent)
	p.take(p.lineEnd(), true)
	t.to = p.at
	p.move(1)
	var lines []string
	blank := 0 // widest blank line before the first text line
	for p.at < len(p.text) && !p.marker("---") && !p.marker("...") {
		line := p.text[p.at : p.at+p.lineEnd()]
		body := strings.TrimLeft(line, " ")
		at, empty := len(line)-len(body), strings.TrimLeft(body, "\t") == ""
		switch {
		case indent < 0 && body != "" && at > parent:
			indent = at
		case empty && indent < 0:
			blank = max(blank, at)
		}
		switch {
		case indent == at && blank > at: // YAML 1.2, 8.1.1.1: otherwise the text would not be what it looks like
			p.move(at)
			p.fail("an empty line before this has more spaces; remove them")
			return
		case indent >= 0 && at >= indent:
			lines = append(lines, line[indent:])
		case empty:
			lines = append(lines, "")
		case at > parent && body[0] != '#':
			p.move(at)
			p.fail("this line is indented less than the first one of the block")
			return
		default:
			t.text = chomped(header[0], chomp, lines)
			return
		}
		if p.move(len(line) + 1); !empty {
			t.to = p.at - 1
		}
	}
	t.text = chomped(header[0], chomp, lines)
}

// chomped joins the lines of a block scalar.
func chomped(style, chomp byte, lines []string) string {
	kept := len(lines)
	for kept > 0 && lines[kept-1] == "" {
		kept--
	}
	text, trailing := strings.Join(lines[:kept], "\n"), len(lines)-kept
	if style == '>' {
		text = foldBlock(lines[:kept])
	}
	switch {
	case chomp == '+' && kept > 0:
		return text + strings.Repeat("\n", trailing+1)
	case chomp == '+':
		return strings.Repeat("\n", trailing)
	case chomp == '-' || kept == 0:
		return text
	}
	return text + "\n"
}

const badHeader = "after '|' or '>' only '-' or '+' and a digit are allowed, and the text starts on the next " +
	"line; put other text in quotes"

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

// blockHeader parses a header such as "|2-". The indentation is in characters from the line's start, or -1 if
// it is the first line's.
func blockHeader(header string, parent int) (indent int, chomp byte) {
	indent = -1
	for i := 1; i < len(header); i++ {
		switch c := header[i]; {
		case c == '+' || c == '-':
			chomp = c
		case c >= '1' && c <= '9':
			indent = max(parent, 0) + int(c-'0')
		}
	}
	return indent, chomp
}

// foldBlock joins lines as '>' does: a line break between two lines of text becomes a space, blank lines are
// line breaks, and more indented lines keep theirs.
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
