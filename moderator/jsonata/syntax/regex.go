package syntax

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Bounds of the regular expressions in one expression.
const (
	maxRegex       = 1_000 // bytes of one
	maxRegexSize   = 5_000 // instructions of all
	maxRegexGroups = 50    // of one
)

// Regex is a compiled regular expression. It is RE2, which needs no more than
// one look at each character for each of its instructions.
type Regex struct {
	Source string
	First  *regexp.Regexp
	// Next searches from the character before a place, so that ^ and \b see it;
	// what is found is its first group.
	Next *regexp.Regexp
	Cost int // steps for each character
}

// regex reads a regular expression and its flags; t is the "/" before it.
func (p *parser) regex(t token) (Node, error) {
	length := regexLength(p.src[t.start+1:])
	if length < 0 {
		return nil, p.fail(t.start, "S0302", "/", "the regular expression, or a bracket in it, is never closed")
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

// regexLength finds the "/" that ends a regular expression: one that is not
// escaped and not in brackets. It is -1 if there is none.
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

// badRegex says what RE2 cannot read, and names what other engines can.
func (p *parser) badRegex(at int, pattern string, err error) *Error {
	var problem *syntax.Error
	if !errors.As(err, &problem) {
		return p.fail(at, CodeRegex, "/", "the regular expression cannot be read")
	}
	at += max(0, strings.Index(pattern, problem.Expr))
	const hint = "regular expressions are RE2, which always ends soon"
	switch part := problem.Expr; {
	case strings.HasPrefix(part, "(?=") || strings.HasPrefix(part, "(?!") || strings.HasPrefix(part, "(?<"):
		return leftOut(p.src, at, Shorten(part, MaxShown), "lookaround (?=…) (?!…) (?<=…) (?<!…)", hint)
	case len(part) == 2 && part[0] == '\\' && part[1] >= '1' && part[1] <= '9' || part == `\k`:
		return leftOut(p.src, at, part, `backreferences \1`, hint)
	}
	e := p.fail(at, CodeRegex, "/", fmt.Sprintf("the regular expression cannot be read: %s %s", problem.Code, Quote(Shorten(problem.Expr, MaxShown))))
	if problem.Expr == `\u` {
		e.Hint = `write \x{20AC}`
	}
	return e
}

// regexSize is about how many instructions a regular expression has, counted up
// to a bound before they are made.
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
