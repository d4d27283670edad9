package yamldoc

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// lexer takes the library's tokens one after the other and finds each again in
// the text. What lies between two tokens must be white space: the library drops
// characters here and there (a tab within a plain scalar, say), and its
// positions drift after tags, tabs and comments.
type lexer struct {
	text string
	at   int // offset of what is not yet read
	pos  Pos // of at
	raw  token.Tokens
	out  []tok
	sign string // replaces a '#' that is text; "" in plain YAML
}

func lex(text, sign string) ([]tok, error) {
	raw, err := scan(text)
	if err != nil {
		return nil, err
	}
	l := &lexer{text: text, sign: sign, pos: Pos{1, 1}, raw: raw, out: make([]tok, 0, len(raw)+1)}
	for len(l.raw) > 0 {
		next := l.raw[0]
		l.raw = l.raw[1:]
		if err := l.take(next); err != nil {
			return nil, err
		}
	}
	if err := l.space(); err != nil {
		return nil, err
	}
	if l.at < len(l.text) {
		return nil, l.lost()
	}
	l.add(tok{kind: tokEnd, pos: l.pos})
	return l.out, nil
}

// scan runs the library's lexer, up to its first complaint, which becomes the
// last token.
func scan(text string) (tokens token.Tokens, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("not YAML that can be read (%v)", p)}
		}
	}()
	var s scanner.Scanner
	s.Init(text)
	// An error is also in the tokens, as an invalid one; io.EOF means no text.
	tokens, _ = s.Scan()
	return tokens, nil
}

// take finds one token of the library's.
func (l *lexer) take(t *token.Token) error {
	if t.Type == token.StringType && t.Value == "" {
		return nil // the library's mark for an empty block scalar
	}
	if err := l.space(); err != nil {
		return err
	}
	switch t.Type {
	case token.CommentType:
		return nil // space has skipped it
	case token.InvalidType:
		return l.invalid(t)
	case token.SingleQuoteType, token.DoubleQuoteType:
		return l.quoted()
	case token.LiteralType, token.FoldedType:
		return l.block(t)
	case tokAnchor:
		return l.name(tokAnchor, '&')
	case tokAlias:
		return l.name(tokAlias, '*')
	case tokDirective:
		return l.directive()
	case tokTag, tokMerge, tokDocStart, tokDocEnd, tokColon, tokQuestion, tokDash, tokComma,
		tokOpenSeq, tokCloseSeq, tokOpenMap, tokCloseMap:
		return l.mark(t.Type, t.Value)
	}
	return l.plain(t)
}

// add appends a token that has just been read.
func (l *lexer) add(t tok) {
	t.end = l.pos.Line
	if t.kind == tokBlock {
		t.end-- // it ends with a line, and we are behind it
	}
	if l.sign != "" {
		t.text, t.body = strings.ReplaceAll(t.text, l.sign, "#"), strings.ReplaceAll(t.body, l.sign, "#")
	}
	l.out = append(l.out, t)
}

// advance reads n bytes.
func (l *lexer) advance(n int) {
	for _, r := range l.text[l.at : l.at+n] {
		l.pos = l.pos.after(r)
	}
	l.at += n
}

// space reads white space and comments.
func (l *lexer) space() error {
	for l.at < len(l.text) {
		switch l.text[l.at] {
		case ' ', '\t', '\n':
			l.advance(1)
		case '#':
			if l.at > 0 && strings.IndexByte(" \t\n", l.text[l.at-1]) < 0 {
				return l.fail("a comment must have a space before its '#'")
			}
			if l.maybeText() {
				return l.fail("this '#' may begin a text or a comment; " +
					"put the text in quotes, or a space behind the '#' of a comment")
			}
			l.advance(strings.IndexByte(l.text[l.at:], '\n'))
		default:
			return nil
		}
	}
	return nil
}

// mark reads a token that is exactly s.
func (l *lexer) mark(kind tokKind, s string) error {
	if s == "" || !strings.HasPrefix(l.text[l.at:], s) {
		return l.lost()
	}
	t := tok{kind: kind, pos: l.pos, text: s}
	l.advance(len(s))
	t.adjoins = strings.IndexByte(" \t\n,]}", l.text[l.at]) < 0
	l.add(t)
	return nil
}

// name reads an anchor or alias; the library has its name as a second token.
func (l *lexer) name(kind tokKind, sign byte) error {
	if l.text[l.at] != sign {
		return l.lost()
	}
	n := strings.IndexAny(l.text[l.at:], " \t\n,[]{}")
	if n < 2 || len(l.raw) == 0 || l.raw[0].Value != l.text[l.at+1:l.at+n] {
		return l.fail(fmt.Sprintf("a name of letters and digits is missing after '%c'", sign))
	}
	l.raw = l.raw[1:]
	return l.mark(kind, l.text[l.at:l.at+n])
}

// directive reads a line such as "%YAML 1.2" with all tokens that are on it.
func (l *lexer) directive() error {
	line := l.text[l.at : l.at+strings.IndexByte(l.text[l.at:], '\n')]
	if l.pos.Column > 1 {
		return l.fail("a value cannot begin with %; put it in quotes")
	}
	if name, _, _ := strings.Cut(line, " "); name != "%YAML" {
		return l.fail("directives other than %YAML are not supported")
	}
	for len(l.raw) > 0 && l.raw[0].Type != token.DocumentHeaderType {
		l.raw = l.raw[1:]
	}
	return l.mark(tokDirective, line)
}

func (l *lexer) fail(msg string) error { return &Error{Pos: l.pos, Message: msg} }

// lost reports that the library's tokens do not account for the text here.
func (l *lexer) lost() error {
	return l.fail("this cannot be read as YAML; if it is meant as text, put it in quotes or in a block after '|'")
}

// invalid says in plain words what the library's lexer complains about.
func (l *lexer) invalid(t *token.Token) error {
	if l.at >= len(l.text) {
		return l.fail(t.Error)
	}
	switch c := l.text[l.at]; {
	case c == '"' || c == '\'':
		if err := l.quoted(); err != nil {
			return err
		}
	case c == '@' || c == '`':
		return l.fail(fmt.Sprintf("a value cannot begin with %c; put it in quotes", c))
	case strings.Contains(t.Error, "tab character") || strings.Contains(t.Error, "character '\t'"):
		return l.fail("a tab cannot stand before this; use spaces")
	case strings.Contains(t.Error, "header option"):
		return l.fail(badHeader)
	case strings.Contains(t.Error, "multi-line"):
		return l.fail("the block after '|' or '>' before this is empty or not indented; write \"\" for an empty text")
	}
	return l.fail("this cannot be read as YAML: " + t.Error)
}
