package yamldoc

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a scalar in quotes. The library only says that one is here: it
// does not check the digits of escapes and loses trailing spaces.
func (l *lexer) quoted() error {
	quote := l.text[l.at]
	if quote != '\'' && quote != '"' {
		return l.lost()
	}
	out := tok{kind: tokQuoted, pos: l.pos}
	n, escaped := closing(l.text[l.at:], quote)
	if n < 0 {
		return l.fail(fmt.Sprintf("the quote %c is never closed", quote))
	}
	inner := l.text[l.at+1 : l.at+n]
	switch {
	case quote == '\'':
		out.text = strings.ReplaceAll(foldQuoted(inner), "''", "'")
	case !escaped:
		out.text = foldQuoted(inner)
	default:
		text, bad, msg := unescape(inner)
		if msg != "" {
			l.advance(1 + bad)
			return l.fail(msg)
		}
		out.text = text
	}
	l.advance(n + 1)
	l.add(out)
	return nil
}

// closing returns the offset of the quote that ends s, which begins with one,
// and whether there are escapes before it.
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

// fold joins the lines of a plain scalar: a line break is a space, n+1 of them
// are n line breaks.
func fold(s string) string { return strings.Trim(foldQuoted(s), " \t") }

// foldQuoted is fold, but keeps the white space at both ends.
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

// unescape reads the inside of double quotes. If it cannot, it returns the
// offset of what is wrong and says what it is.
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

// escape writes what the escape at the start of s stands for and returns its
// length.
func escape(b *strings.Builder, s string) (n int, msg string) {
	if s[1] == '\n' { // joins two lines; blank lines behind it are line breaks
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
		return 0, "the escape does not stand for a character"
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
