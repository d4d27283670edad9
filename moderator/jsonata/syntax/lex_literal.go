package syntax

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// numberForm is a number as JSON writes it: 007 is three numbers.
var numberForm = lazyregexp.New(`^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

func (l *lexer) number() (token, error) {
	start := l.at
	text := numberForm().FindString(l.src[start:])
	l.at += len(text)
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(value, 0) {
		text = Shorten(text, MaxShown)
		return token{}, l.fail(start, "S0102", text, "the number is too large: "+text)
	}
	return token{kind: numberToken, number: value, start: start}, nil
}

// text reads a string in single or double quotes.
func (l *lexer) text(quote byte) (token, error) {
	start := l.at
	var b strings.Builder
	for at := start + 1; at < len(l.src); {
		switch c := l.src[at]; c {
		case quote:
			l.at = at + 1
			return token{kind: stringToken, text: b.String(), start: start}, nil
		case '\\':
			length, err := l.escape(&b, at)
			if err != nil {
				return token{}, err
			}
			at += length
		default:
			b.WriteByte(c)
			at++
		}
	}
	return token{}, l.fail(start, "S0101", string(quote), "the text is never closed with "+string(quote))
}

// escapes pairs what may follow a backslash with what it means.
const escapes = "\"\"\\\\//b\bf\fn\nr\rt\t"

// escape writes what the escape sequence at an offset stands for and returns
// its length.
func (l *lexer) escape(b *strings.Builder, at int) (int, error) {
	if at+1 >= len(l.src) {
		return 1, nil // the text is not closed, which is the better message
	}
	c := l.src[at+1]
	if c == 'u' {
		return l.unicodeEscape(b, at)
	}
	for i := 0; i < len(escapes); i += 2 {
		if escapes[i] == c {
			b.WriteByte(escapes[i+1])
			return 2, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(l.src[at+1:])
	err := l.fail(at, "S0103", string(r), fmt.Sprintf(`the escape sequence "\%c" does not exist`, r))
	if c == '\'' {
		err.Hint = `write a text with ' in double quotes`
	}
	return 0, err
}

// unicodeEscape reads \u and four digits; two of them may be one character.
func (l *lexer) unicodeEscape(b *strings.Builder, at int) (int, error) {
	r, ok := hex4(l.src, at)
	if !ok {
		return 0, l.fail(at, "S0104", `\u`, `"\u" must be followed by four hexadecimal digits`)
	}
	if low, ok := hex4(l.src, at+6); ok && utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			b.WriteRune(pair)
			return 12, nil
		}
	}
	b.WriteRune(r) // half a pair becomes U+FFFD
	return 6, nil
}

// hex4 reads \uXXXX at an offset.
func hex4(src string, at int) (rune, bool) {
	if at+6 > len(src) || src[at] != '\\' || src[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(src[at+2:at+6], 16, 16)
	return rune(n), err == nil
}
