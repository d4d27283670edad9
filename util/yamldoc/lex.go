package yamldoc

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// lexer takes the library's tokens in order and locates each in the text. Only whitespace can be between two
// tokens. This is necessary because the library drops some characters (such as a tab in a plain scalar), and
// its positions are wrong after tags, tabs and comments.
type lexer struct {
	text string
	at   int // offset of the unread text
	pos  Pos // position of at
	raw  token.Tokens
	out  []tok
	sign string // stands for a '#' that is text; "" in plain YAML
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

// scan runs the library's lexer up to its first error, which becomes the last token.
func scan(text string) (tokens token.Tokens, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("invalid YAML (%v)", p)}
		}
	}()
	var s scanner.Scanner
	s.Init(text)
	// An error is also in the tokens, as an invalid one; io.EOF means an empty text.
	tokens, _ = s.Scan()
	return tokens, nil
}

// take locates a token of the library.
func (l *lexer) take(t *token.Token) error {
	if t.Type == token.StringType && t.Value == "" {
		return nil // the library's token for an empty block scalar
	}
	if err := l.space(); err != nil {
		return err
	}
	switch t.Type {
	case token.CommentType:
		return nil // already skipped by space
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

// add appends the token just read.
func (l *lexer) add(t tok) {
	t.end = l.pos.Line
	if t.kind == tokBlock {
		t.end-- // ends with a line, and the lexer is past it
	}
	if l.sign != "" {
		t.text, t.body = strings.ReplaceAll(t.text, l.sign, "#"), strings.ReplaceAll(t.body, l.sign, "#")
	}
	l.out = append(l.out, t)
}

// advance moves forward n bytes.
func (l *lexer) advance(n int) {
	for _, r := range l.text[l.at : l.at+n] {
		l.pos = l.pos.after(r)
	}
	l.at += n
}

// space skips whitespace and comments.
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
				return l.fail("this '#' may start a text or a comment; put the text in quotes, or a space after " +
					"the '#' of a comment")
			}
			l.advance(strings.IndexByte(l.text[l.at:], '\n'))
		default:
			return nil
		}
	}
	return nil
}

// mark reads a token with the exact text s.
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

// name reads an anchor or alias, for which the library has two tokens.
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

// directive reads a line such as "%YAML 1.2" with all its tokens.
func (l *lexer) directive() error {
	line := l.text[l.at : l.at+strings.IndexByte(l.text[l.at:], '\n')]
	if l.pos.Column > 1 {
		return l.fail("a value cannot start with %; put it in quotes")
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

// lost reports text that the library's tokens don't cover.
func (l *lexer) lost() error {
	return l.fail("invalid YAML; if this is text, put it in quotes or in a block after '|'")
}

// invalid explains an error of the library's lexer.
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
		return l.fail(fmt.Sprintf("a value cannot start with %c; put it in quotes", c))
	case strings.Contains(t.Error, "tab character") || strings.Contains(t.Error, "character '\t'"):
		return l.fail("a tab before this is not allowed; use spaces")
	case strings.Contains(t.Error, "header option"):
		return l.fail(badHeader)
	case strings.Contains(t.Error, "multi-line"):
		return l.fail("the block after '|' or '>' before this is empty or not indented; write \"\" for an empty text")
	}
	return l.fail("invalid YAML: " + t.Error)
}

// tok is a token with its actual position and content.
type tok struct {
	kind tokKind
	pos  Pos
	end  int    // last line
	text string // of a scalar: unquoted; of an anchor, alias or tag: with its first character
	body string // of a block scalar: its raw lines
	// adjoins means that no whitespace follows a colon.
	adjoins bool
	props   properties // of a value: its anchor and tag
}

// tokKind is the library's token type, with fewer distinctions.
type tokKind = token.Type

const (
	tokEnd       = token.UnknownType
	tokPlain     = token.StringType // an unquoted scalar
	tokQuoted    = token.DoubleQuoteType
	tokBlock     = token.LiteralType // a block scalar; text is its header
	tokColon     = token.MappingValueType
	tokQuestion  = token.MappingKeyType
	tokDash      = token.SequenceEntryType
	tokComma     = token.CollectEntryType
	tokOpenSeq   = token.SequenceStartType
	tokCloseSeq  = token.SequenceEndType
	tokOpenMap   = token.MappingStartType
	tokCloseMap  = token.MappingEndType
	tokAnchor    = token.AnchorType
	tokAlias     = token.AliasType
	tokTag       = token.TagType
	tokMerge     = token.MergeKeyType
	tokDocStart  = token.DocumentHeaderType
	tokDocEnd    = token.DocumentEndType
	tokDirective = token.DirectiveType
	tokMissing   = token.ImplicitNullType // a missing value
)

// opens, closes, property, complete and endsDocument classify a token for its neighbors; complete means that
// it ends a value.
func (t tok) opens() bool    { return t.kind == tokOpenSeq || t.kind == tokOpenMap }
func (t tok) closes() bool   { return t.kind == tokCloseSeq || t.kind == tokCloseMap }
func (t tok) property() bool { return t.kind == tokAnchor || t.kind == tokTag }
func (t tok) words() bool    { return t.kind == tokPlain || t.kind == tokQuoted }
func (t tok) complete() bool {
	return t.words() || t.kind == tokBlock || t.kind == tokAlias || t.closes()
}
func (t tok) endsDocument() bool {
	return t.kind == tokEnd || t.kind == tokDocStart || t.kind == tokDocEnd || t.kind == tokDirective
}

// atKey reports whether a scalar followed by a colon is at i.
func atKey(toks []tok, i int, flow bool) bool {
	t := toks[i]
	if !t.words() && t.kind != tokAlias && t.kind != tokMerge {
		return false
	}
	colon := toks[i+1] // exists, because a scalar isn't the last token
	return colon.kind == tokColon && (flow || colon.pos.Line == t.end)
}

// quoted reads a quoted scalar. The library only reports its start: it doesn't check the digits of escapes
// and loses trailing spaces.
func (l *lexer) quoted() error {
	quote := l.text[l.at]
	if quote != '\'' && quote != '"' {
		return l.lost()
	}
	out := tok{kind: tokQuoted, pos: l.pos}
	n, escaped := closing(l.text[l.at:], quote)
	if n < 0 {
		return l.fail(fmt.Sprintf("unclosed quote %c", quote))
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

// block reads a block scalar: its header and its raw lines, whose meaning depends on the parent's indentation
// ([blockText]).
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
		return l.fail("only a comment can follow '|' or '>' on its line")
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

// unindent returns the lines of a block scalar without their indentation, which is the first line's if indent
// is -1. Lines of only whitespace can be shorter.
func unindent(t tok, indent int) ([]string, error) {
	if t.body == "" {
		return nil, nil
	}
	lines := strings.Split(strings.TrimSuffix(t.body, "\n"), "\n")
	blank := 0 // widest blank line before the first text line
	for i, line := range lines {
		body := strings.TrimLeft(line, " ")
		at := len(line) - len(body)
		switch {
		case indent >= 0:
		case body == "":
			blank = max(blank, at)
		case blank > at: // YAML 1.2, 8.1.1.1: otherwise the text would not be what it looks like
			return nil, &Error{Pos: Pos{t.pos.Line + 1 + i, at + 1}, Message: "an empty line before this has more " +
				"spaces; remove them"}
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
			indent = max(parent-1, 0) + int(c-'0')
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

// plain reads an unquoted scalar. Its characters come from the library's value, the whitespace between them
// from the text.
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

// match returns the offset after the text that equals s except for whitespace, or -1.
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

// startsWithIndicator reports whether a text can't be a plain scalar. The library can return one, for example
// after an empty block scalar.
func startsWithIndicator(s string) bool {
	switch s[0] {
	case '-', '?', ':':
		return len(s) == 1 || strings.IndexByte(" \t\n", s[1]) >= 0
	}
	return strings.IndexByte(",[]{}#&*!|>'\"%@`", s[0]) >= 0
}

// notPlain returns the offset of a character that must end a plain scalar but doesn't, or -1: the library
// ignores it in a line that starts with a dash and continues the previous line.
func notPlain(raw string) int {
	for i := range len(raw) {
		switch raw[i] {
		case ':':
			if i+1 == len(raw) || strings.IndexByte(" \t\n", raw[i+1]) >= 0 {
				return i
			}
		case '#':
			if strings.IndexByte(" \t\n", raw[i-1]) >= 0 { // '#' can't be the first character
				return i
			}
		}
	}
	return -1
}
