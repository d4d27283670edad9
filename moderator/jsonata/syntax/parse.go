package syntax

import (
	"fmt"
	"strings"
)

// Bounds of an expression: far above every honest condition.
const (
	maxSource  = 64 << 10 // bytes
	maxNesting = 200      // brackets and operators that open inside one another
	MaxTree    = 500      // depth of the tree: a chain of operators is one level each
	MaxShown   = 40       // bytes of a token or text in a message
)

// Parse reads an expression, and refuses what the package leaves out ([ErrLeftOut]).
// assigned are the variables with a ":=" somewhere, and parameters. The error is an
// *[Error].
func Parse(src string) (root Node, assigned map[string]bool, err error) {
	if len(src) > maxSource {
		return nil, nil, &Error{
			Code: CodeTooLong, Pos: Position(src, 0), Cause: ErrLimit,
			Message: fmt.Sprintf("the expression has %d bytes, at most %d are read", len(src), maxSource),
		}
	}
	p := &parser{lexer: lexer{src: src}, unfinished: -1, assigned: map[string]bool{}}
	root, err = p.whole()
	return root, p.assigned, err
}

// parser is a top-down operator precedence parser with one token of lookahead.
type parser struct {
	lexer
	tok        token
	before     token // the one before tok, for hints
	depth      int
	assigned   map[string]bool // variables with a ":=" so far, and parameters
	regexSize  int             // of all regular expressions so far
	unfinished int             // offset where an operand was missing because the text ended, or -1
	// invalid is the first thing that reads well and means nothing. What cannot
	// be read is worth more, so it is kept for later.
	invalid error
}

// whole reads a whole expression.
func (p *parser) whole() (Node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	root, err := p.expression(0)
	switch {
	case err != nil:
		return nil, err
	case p.tok.kind != endToken:
		return nil, p.unexpected()
	case p.unfinished >= 0:
		return nil, p.fail(p.unfinished, "S0207", "", "the expression ends where an operand should follow")
	}
	return root, p.invalid
}

// later keeps an error until the whole expression is read.
func (p *parser) later(err *Error) {
	if p.invalid == nil {
		p.invalid = err
	}
}

func (p *parser) advance() (err error) {
	p.before = p.tok
	p.tok, err = p.next()
	if err == nil && (p.tok.is("!") || p.tok.is("~")) {
		e := p.fail(p.tok.start, "S0204", p.tok.text, fmt.Sprintf("the operator %q does not exist", p.tok.text))
		if p.tok.text == "!" {
			e.Hint = "write $not(…)"
		}
		return e
	}
	return err
}

// expect passes over an operator that must come now.
func (p *parser) expect(op string) error {
	if p.tok.is(op) {
		return p.advance()
	}
	if p.tok.kind == endToken {
		return p.fail(p.tok.start, "S0203", op, fmt.Sprintf("%q is missing at the end of the expression", op))
	}
	return p.fail(p.tok.start, "S0202", op, fmt.Sprintf("%q should come here, not %s", op, p.tok.shown(p.src)))
}

// expression reads an operand and the operators after it that bind stronger
// than the given power.
func (p *parser) expression(power int) (Node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxNesting {
		return nil, TooDeep(p.src, p.tok.start)
	}
	left, err := p.operand()
	for err == nil && power < p.tok.power() {
		t := p.tok
		if err := p.advance(); err != nil {
			return nil, err
		}
		left, err = p.infix(t, left)
	}
	return left, err
}

func (p *parser) operand() (Node, error) {
	t := p.tok
	if t.is("/") { // before its inside is read as tokens
		return p.regex(t)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	return p.prefix(t)
}

// TooDeep is the error for an expression that is nested too deeply at a place.
func TooDeep(src string, at int) *Error {
	return &Error{
		Code: CodeTooDeep, Pos: Position(src, at), Cause: ErrLimit,
		Message: "the expression is nested too deeply",
	}
}

// power is how strongly an operator binds its left operand; 0 ends an
// expression.
func (t token) power() int {
	if t.kind != operatorToken {
		return 0
	}
	switch t.text {
	case "[", "(", "@", "#":
		return 80
	case ".":
		return 75
	case "{":
		return 70
	case "*", "/", "%":
		return 60
	case "+", "-", "&":
		return 50
	case "=", "!=", "<", "<=", ">", ">=", "in", "^", "~>", "?:", "??":
		return 40
	case "and":
		return 30
	case "or":
		return 25
	case "?":
		return 20
	case ":=":
		return 10
	}
	return 0
}

// leftOut refuses a part of JSONata that this package does not have.
func (p *parser) leftOut(at int, token, feature, hint string) error {
	return leftOut(p.src, at, token, feature, hint)
}

// unexpected is about a token after an expression that could have ended.
func (p *parser) unexpected() error {
	e := p.fail(p.tok.start, "S0201", p.tok.text, p.tok.shown(p.src)+" should not come here")
	e.Hint = p.misspeltOperator()
	return e
}

// misspeltOperator is a hint for people used to another language.
func (p *parser) misspeltOperator() string {
	switch {
	case p.tok.is("|"):
		return `write "or"`
	case p.tok.kind == nameToken && !p.tok.quoted:
		switch lower := strings.ToLower(p.tok.text); lower {
		case "and", "or", "in":
			return fmt.Sprintf("write %q", lower)
		}
		if p.before.kind == nameToken && strings.EqualFold(p.before.text, "not") {
			return "write $not(…)"
		}
	}
	return ""
}
