package syntax

import (
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
)

type tokenKind int

const (
	endToken tokenKind = iota
	nameToken
	variableToken
	stringToken
	numberToken
	constToken
	operatorToken
)

type token struct {
	kind   tokenKind
	text   string // operator; name, without $ and quotes; value of a string; "true"
	number float64
	quoted bool // a name in backquotes
	start  int  // offset in bytes
}

// is tells whether the token is an operator.
func (t token) is(op string) bool { return t.kind == operatorToken && t.text == op }

// doubles are the operators of two characters; they win over those of one.
var doubles = [...]string{"..", ":=", "!=", ">=", "<=", "**", "~>", "?:", "??"}

// singles are the operators of one character; none of them can be in a name.
const singles = ".[]{}(),@#;:?+-*/%|=<>^&!~"

const spaces = " \t\n\r\v"

// lexer cuts an expression into tokens, one at a time.
type lexer struct {
	src string
	at  int
}

func (l *lexer) fail(at int, code, token, message string) *Error {
	return &Error{Code: code, Pos: Position(l.src, at), Token: token, Message: message}
}

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	start, rest := l.at, l.src[l.at:]
	if rest == "" {
		return token{kind: endToken, start: start}, nil
	}
	for _, op := range doubles {
		if strings.HasPrefix(rest, op) {
			return l.operator(op), nil
		}
	}
	if strings.IndexByte(singles, rest[0]) >= 0 {
		return l.operator(rest[:1]), nil
	}
	switch c := rest[0]; {
	case c == '"' || c == '\'':
		return l.text(c)
	case c >= '0' && c <= '9':
		return l.number()
	case c == '`':
		return l.quotedName()
	}
	return l.name(), nil
}

// skip passes over white space and comments.
func (l *lexer) skip() error {
	for {
		rest := strings.TrimLeft(l.src[l.at:], spaces)
		l.at = len(l.src) - len(rest)
		if !strings.HasPrefix(rest, "/*") {
			return nil
		}
		length := strings.Index(rest[2:], "*/")
		if length < 0 {
			return l.fail(l.at, "S0106", "/*", "the comment is never closed with */")
		}
		l.at += length + 4
	}
}

func (l *lexer) operator(op string) token {
	t := token{kind: operatorToken, text: op, start: l.at}
	l.at += len(op)
	return t
}

func (l *lexer) quotedName() (token, error) {
	start := l.at
	length := strings.IndexByte(l.src[start+1:], '`')
	if length < 0 {
		return token{}, l.fail(start, "S0105", "`", "the name in backquotes is never closed with `")
	}
	l.at = start + length + 2
	return token{kind: nameToken, text: l.src[start+1 : l.at-1], quoted: true, start: start}, nil
}

// name reads to the next space or operator, whatever else the name holds.
func (l *lexer) name() token {
	start := l.at
	length := strings.IndexAny(l.src[start:], spaces+singles)
	if length < 0 {
		length = len(l.src) - start
	}
	l.at = start + length
	word := l.src[start:l.at]
	switch word {
	case "and", "or", "in":
		return token{kind: operatorToken, text: word, start: start}
	case "true", "false", "null":
		return token{kind: constToken, text: word, start: start}
	}
	if word[0] == '$' {
		return token{kind: variableToken, text: word[1:], start: start}
	}
	return token{kind: nameToken, text: word, start: start}
}

// shown is a token as an error shows it.
func (t token) shown(src string) string {
	switch t.kind {
	case endToken:
		return "the end"
	case variableToken:
		return `"$` + Shorten(t.text, MaxShown) + `"`
	case numberToken:
		return jsnumber.Format(t.number)
	case stringToken:
		return "the text " + Quote(Shorten(t.text, MaxShown))
	}
	return `"` + Shorten(t.text, MaxShown) + `"`
}

// Shorten cuts a text after so many bytes, at a character.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
