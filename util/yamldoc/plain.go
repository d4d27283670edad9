package yamldoc

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// plain reads a scalar without quotes. The library's value tells which
// characters belong to it; the white space between them is the text's.
func (l *lexer) plain(t *token.Token) error {
	end := l.match(t.Value)
	if end < 0 {
		return l.lost()
	}
	raw := l.text[l.at:end]
	if raw == "" || startsWithIndicator(raw) {
		return l.lost()
	}
	if i := notPlain(raw); i >= 0 {
		l.advance(i)
		return l.fail("text without quotes cannot contain ': ' or ' #'; check the indentation, or put the text in quotes")
	}
	out := tok{kind: tokPlain, pos: l.pos, text: fold(raw)}
	l.advance(len(raw))
	l.add(out)
	return nil
}

// match returns the offset behind the text that has the same characters as s
// but for white space, or -1.
func (l *lexer) match(s string) int {
	at := l.at
	for _, r := range s {
		if r == ' ' || r == '\t' || r == '\n' {
			continue
		}
		for at < len(l.text) && strings.IndexByte(" \t\n", l.text[at]) >= 0 {
			at++
		}
		got, size := utf8.DecodeRuneInString(l.text[at:])
		if got != r || size == 0 {
			return -1
		}
		at += size
	}
	return at
}

// startsWithIndicator reports whether a text cannot be a plain scalar: the
// library loses its way after an empty block scalar, for one.
func startsWithIndicator(s string) bool {
	switch s[0] {
	case '-', '?', ':':
		return len(s) == 1 || strings.IndexByte(" \t\n", s[1]) >= 0
	}
	return strings.IndexByte(",[]{}#&*!|>'\"%@`", s[0]) >= 0
}

// notPlain returns the offset of what ends a plain scalar but stands in this
// one, or -1: the library reads over it in a line that begins with a dash and
// continues the text of the line before.
func notPlain(raw string) int {
	for i := range len(raw) {
		switch raw[i] {
		case ':':
			if i+1 == len(raw) || strings.IndexByte(" \t\n", raw[i+1]) >= 0 {
				return i
			}
		case '#':
			if strings.IndexByte(" \t\n", raw[i-1]) >= 0 { // '#' is no first character
				return i
			}
		}
	}
	return -1
}
