package syntax

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/util/lazyregexp"
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
	text   string // operator; name without $ and quotes; value of a string; "true"
	number float64
	quoted bool // a name in backquotes
	start  int  // offset in bytes
}

// is reports whether the token is the operator op.
func (t token) is(op string) bool { return t.kind == operatorToken && t.text == op }

// doubles lists the operators with two characters, which take precedence over shorter ones.
var doubles = [...]string{"..", ":=", "!=", ">=", "<=", "**", "~>", "?:", "??"}

// singles lists the operators with one character. A name can't contain any of them.
const singles = ".[]{}(),@#;:?+-*/%|=<>^&!~"

const spaces = " \t\n\r\v"

// lexer splits an expression into tokens.
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

// skip skips whitespace and comments.
func (l *lexer) skip() error {
	for {
		rest := strings.TrimLeft(l.src[l.at:], spaces)
		l.at = len(l.src) - len(rest)
		if !strings.HasPrefix(rest, "/*") {
			return nil
		}
		length := strings.Index(rest[2:], "*/")
		if length < 0 {
			return l.fail(l.at, "S0106", "/*", "missing */ after comment")
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
		return token{}, l.fail(start, "S0105", "`", "missing ` after name")
	}
	l.at = start + length + 2
	return token{kind: nameToken, text: l.src[start+1 : l.at-1], quoted: true, start: start}, nil
}

// name scans up to the next space or operator; a name can contain any other character.
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

// shown formats a token for an error.
func (t token) shown(src string) string {
	switch t.kind {
	case endToken:
		return "the end"
	case variableToken:
		return `"$` + Shorten(t.text, MaxShown) + `"`
	case numberToken:
		return jsnumber.Format(t.number)
	case stringToken:
		return "the string " + Quote(Shorten(t.text, MaxShown))
	}
	return `"` + Shorten(t.text, MaxShown) + `"`
}

// Shorten truncates a text to at most this many bytes, between characters.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// numberForm matches a JSON number, so 007 is three numbers.
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

// text scans a string in single or double quotes.
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
	return token{}, l.fail(start, "S0101", string(quote), "missing "+string(quote)+" after string")
}

// escapes lists pairs of an escape character and its value.
const escapes = "\"\"\\\\//b\bf\fn\nr\rt\t"

// escape decodes the escape sequence at an offset and returns its length.
func (l *lexer) escape(b *strings.Builder, at int) (int, error) {
	if at+1 >= len(l.src) {
		return 1, nil // the error about the unclosed text is more helpful
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
	err := l.fail(at, "S0103", string(r), fmt.Sprintf(`unknown escape sequence "\%c"`, r))
	if c == '\'' {
		err.Hint = `to use ' in a string, put it in double quotes`
	}
	return 0, err
}

// unicodeEscape decodes \uXXXX. Two of them can form a surrogate pair.
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

// hex4 decodes \uXXXX at an offset.
func hex4(src string, at int) (rune, bool) {
	if at+6 > len(src) || src[at] != '\\' || src[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(src[at+2:at+6], 16, 16)
	return rune(n), err == nil
}

// Bounds of the regular expressions in one expression.
const (
	maxRegex       = 1_000 // bytes of each
	maxRegexSize   = 5_000 // instructions of all together
	maxRegexGroups = 50    // groups of each
)

// Regex is a compiled regular expression. RE2 examines each character at most once for each instruction.
type Regex struct {
	Source string
	First  *regexp.Regexp
	// Next searches from the character before a position, so that ^ and \b see it. Its first group is the
	// match.
	Next *regexp.Regexp
	Cost int // steps per character
}

// regex parses a regular expression and its flags; t is the opening "/".
func (p *parser) regex(t token) (Node, error) {
	length := regexLength(p.src[t.start+1:])
	if length < 0 {
		return nil, p.fail(t.start, "S0302", "/", "unclosed regular expression or bracket")
	}
	pattern := p.src[t.start+1:][:length]
	p.at = t.start + length + 2
	flags := p.at
	for p.at < len(p.src) && (p.src[p.at] == 'i' || p.src[p.at] == 'm') {
		p.at++
	}
	r, err := p.compile(t.start+1, pattern, p.src[flags:p.at])
	if err != nil {
		return nil, err
	}
	return &Pattern{Common{At: t.start}, r}, p.advance()
}

// regexLength returns the offset of the closing "/", which is neither escaped nor in brackets, or -1.
func regexLength(text string) int {
	depth := 0
	escaped := false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped:
			escaped = false
			continue
		case c == '\\':
			escaped = true
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case c == '/' && depth == 0:
			return i
		}
	}
	return -1
}

func (p *parser) compile(at int, pattern, flags string) (*Regex, error) {
	switch {
	case pattern == "":
		return nil, p.fail(at-1, "S0301", "/", "a regular expression must not be empty")
	case len(pattern) > maxRegex:
		return nil, p.regexTooLarge(at)
	}
	mode := syntax.Perl
	if strings.Contains(flags, "i") {
		mode |= syntax.FoldCase
	}
	if strings.Contains(flags, "m") {
		mode &^= syntax.OneLine
	}
	tree, err := syntax.Parse(pattern, mode)
	if err != nil {
		return nil, p.badRegex(at, pattern, err)
	}
	size, groups := regexSize(tree, maxRegexSize), tree.MaxCap()
	p.regexSize += size
	if p.regexSize > maxRegexSize || groups > maxRegexGroups {
		return nil, p.regexTooLarge(at)
	}
	if flags != "" {
		pattern = "(?" + flags + ":" + pattern + ")"
	}
	r := &Regex{Source: pattern, Cost: 1 + size*(4+groups)/32}
	if r.First, err = regexp.Compile(pattern); err == nil {
		r.Next, err = regexp.Compile(`\A(?s:..*?)(` + pattern + `)`)
	}
	if err != nil {
		return nil, p.badRegex(at, pattern, err)
	}
	return r, nil
}

func (p *parser) regexTooLarge(at int) *Error {
	e := p.fail(at, CodeTooLong, "/", "the regular expressions are too large")
	e.Cause = ErrLimit
	return e
}

// badRegex returns an error for a pattern that RE2 rejects, and mentions features of other engines.
func (p *parser) badRegex(at int, pattern string, err error) *Error {
	var problem *syntax.Error
	if !errors.As(err, &problem) {
		return p.fail(at, CodeRegex, "/", "invalid regular expression")
	}
	at += max(0, strings.Index(pattern, problem.Expr))
	const hint = "regular expressions use RE2 syntax"
	switch part := problem.Expr; {
	case strings.HasPrefix(part, "(?=") || strings.HasPrefix(part, "(?!") || strings.HasPrefix(part, "(?<"):
		return leftOut(p.src, at, Shorten(part, MaxShown), "lookaround (?=…) (?!…) (?<=…) (?<!…)", hint)
	case len(part) == 2 && part[0] == '\\' && part[1] >= '1' && part[1] <= '9' || part == `\k`:
		return leftOut(p.src, at, part, `backreferences \1`, hint)
	}
	e := p.fail(at, CodeRegex, "/", fmt.Sprintf("invalid regular expression: %s %s", problem.Code,
		Quote(Shorten(problem.Expr, MaxShown))))
	if problem.Expr == `\u` {
		e.Hint = `write \x{20AC}`
	}
	return e
}

// regexSize estimates the number of instructions of a regular expression before it is compiled. It stops
// counting at a bound.
func regexSize(re *syntax.Regexp, most int) int {
	size := 1 + len(re.Rune)/8
	if re.Op == syntax.OpLiteral {
		size = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if size <= most {
			size += regexSize(sub, most)
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min+1, re.Max)
	}
	return min(size, most+1)
}

// Quote formats a text as JSON with only the required escapes.
func Quote(s string) string { return string(AppendQuoted(nil, s)) }

// AppendQuoted appends the result of [Quote] for s.
func AppendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			if c < ' ' {
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
				continue
			}
			b = append(b, c)
		}
	}
	return append(b, '"')
}
