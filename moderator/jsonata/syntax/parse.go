package syntax

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
)

// Bounds of an expression, far above any realistic condition.
const (
	maxSource  = 64 << 10 // bytes
	maxNesting = 200      // nested brackets and operators
	MaxTree    = 500      // depth of the tree; each operator of a chain adds a level
	MaxShown   = 40       // bytes of a token or text in a message
)

// Parse parses an expression and rejects what the package doesn't support ([ErrLeftOut]). assigned contains
// the parameters and the variables assigned by ":=". The error is an *[Error].
func Parse(src string) (root Node, assigned map[string]bool, err error) {
	if len(src) > maxSource {
		return nil, nil, &Error{
			Code: CodeTooLong, Pos: Position(src, 0), Cause: ErrLimit,
			Message: fmt.Sprintf("the expression has %d bytes; the limit is %d", len(src), maxSource),
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
	before     token // the previous token, for hints
	depth      int
	assigned   map[string]bool // variables assigned so far, and parameters
	regexSize  int             // total size of the regular expressions so far
	unfinished int             // offset of an operand missing at the end of the text, or -1
	// invalid is the first semantic error. It is reported only if there is no syntax error.
	invalid error
}

// whole parses a complete expression.
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
		return nil, p.fail(p.unfinished, "S0207", "", "unexpected end of expression: missing operand")
	}
	return root, p.invalid
}

// later records a semantic error.
func (p *parser) later(err *Error) {
	if p.invalid == nil {
		p.invalid = err
	}
}

func (p *parser) advance() (err error) {
	p.before = p.tok
	p.tok, err = p.next()
	if err == nil && (p.tok.is("!") || p.tok.is("~")) {
		e := p.fail(p.tok.start, "S0204", p.tok.text, fmt.Sprintf("unknown operator %q", p.tok.text))
		if p.tok.text == "!" {
			e.Hint = "write $not(…)"
		}
		return e
	}
	return err
}

// expect consumes the operator op or returns an error.
func (p *parser) expect(op string) error {
	if p.tok.is(op) {
		return p.advance()
	}
	if p.tok.kind == endToken {
		return p.fail(p.tok.start, "S0203", op, fmt.Sprintf("unexpected end of expression: missing %q", op))
	}
	return p.fail(p.tok.start, "S0202", op, fmt.Sprintf("want %q, got %s", op, p.tok.shown(p.src)))
}

// expression parses an operand and the following operators that bind more tightly than power.
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
	if t.is("/") { // before its content is tokenized
		return p.regex(t)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	return p.prefix(t)
}

// TooDeep returns the error for an expression that is too deeply nested.
func TooDeep(src string, at int) *Error {
	return &Error{
		Code: CodeTooDeep, Pos: Position(src, at), Cause: ErrLimit,
		Message: "the expression is nested too deeply",
	}
}

// power returns the left binding power of an operator; 0 ends an expression.
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

// leftOut returns the error for an unsupported part of JSONata.
func (p *parser) leftOut(at int, token, feature, hint string) error {
	return leftOut(p.src, at, token, feature, hint)
}

// unexpected returns an error about a token after a complete expression.
func (p *parser) unexpected() error {
	e := p.fail(p.tok.start, "S0201", p.tok.text, "unexpected "+p.tok.shown(p.src))
	e.Hint = p.misspeltOperator()
	return e
}

// misspeltOperator returns a hint for operators of other languages.
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

// prefix parses an expression that starts with t.
func (p *parser) prefix(t token) (Node, error) {
	at := Common{At: t.start}
	switch t.kind {
	case endToken:
		if p.unfinished < 0 {
			p.unfinished = t.start
		}
		return &Const{Common: at}, nil
	case nameToken:
		if !t.quoted && (t.text == "function" || t.text == "λ") && p.tok.is("(") {
			return p.lambda(t)
		}
		return newName(t), nil
	case variableToken:
		return &Variable{Common: at, Name: t.text}, nil
	case stringToken:
		return &String{Common: at, Text: t.text}, nil
	case numberToken:
		return &Number{Common: at, Value: t.number}, nil
	case constToken:
		return newConst(t), nil
	}
	return p.prefixOperator(t)
}

func (p *parser) prefixOperator(t token) (Node, error) {
	at := Common{At: t.start}
	switch t.text {
	case "and", "or", "in": // can be field names
		return newName(t), nil
	case "-":
		return p.negation(t)
	case "*":
		return &Wildcard{at}, nil
	case "**":
		return &Descendants{at}, nil
	case "(":
		return p.block(t)
	case "[":
		return p.array(t)
	case "{":
		g, err := p.object(t)
		return &Object{at, g}, err
	case "%":
		return nil, p.leftOut(t.start, "%", "parent operator %", "write the path from $$")
	case "|":
		return nil, p.leftOut(t.start, "|", "transforms |…|…|", "write $merge([object, {…}])")
	}
	e := p.fail(t.start, "S0211", t.text, fmt.Sprintf("want an operand, got %q", t.text))
	switch t.text {
	case "=":
		e.Hint = `write one "=" to compare`
	case "&":
		e.Hint = `write "and"`
	case ">":
		e.Hint = `write ">=" or "!="`
	}
	return nil, e
}

func newName(t token) Node {
	at := Common{At: t.start}
	return &Path{Common: at, Steps: []Node{&Name{Common: at, Name: t.text}}}
}

func newConst(t token) Node {
	n := &Const{Common: Common{At: t.start}}
	if t.text != "null" {
		n.Value = t.text == "true"
	}
	return n
}

func (p *parser) negation(t token) (Node, error) {
	operand, err := p.expression(70)
	if err != nil {
		return nil, err
	}
	if n, ok := operand.(*Number); ok {
		n.Value, n.At = -n.Value, t.start
		return n, nil
	}
	return &Negate{Common{At: t.start}, operand}, nil
}

// block parses the rest of a block after "(": expressions separated by semicolons.
func (p *parser) block(t token) (Node, error) {
	b := &Block{Common: Common{At: t.start}}
	for !p.tok.is(")") {
		n, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		b.Exprs = append(b.Exprs, n)
		b.whole = b.whole || BeginsWhole(n)
		if !p.tok.is(";") {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	return b, p.expect(")")
}

// array parses the rest of an array after "[".
func (p *parser) array(t token) (Node, error) {
	a := &Array{Common: Common{At: t.start}}
	if p.tok.is("]") {
		return a, p.advance()
	}
	err := p.list(func() error {
		item, err := p.expression(0)
		if err == nil && p.tok.is("..") {
			item, err = p.rangeFrom(item)
		}
		a.Items = append(a.Items, item)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, p.expect("]")
}

func (p *parser) rangeFrom(from Node) (Node, error) {
	at := Common{At: p.tok.start}
	if err := p.advance(); err != nil {
		return nil, err
	}
	to, err := p.expression(0)
	return &Range{at, from, to}, err
}

// object parses the rest of an object after "{".
func (p *parser) object(t token) (Group, error) {
	g := Group{At: t.start}
	if p.tok.is("}") {
		return g, p.advance()
	}
	err := p.list(func() error {
		key, err := p.expression(0)
		if err != nil {
			return err
		}
		if err := p.expect(":"); err != nil {
			return err
		}
		value, err := p.expression(0)
		g.Pairs = append(g.Pairs, Pair{key, value})
		return err
	})
	if err != nil {
		return g, err
	}
	return g, p.expect("}")
}

// list parses comma-separated items.
func (p *parser) list(item func() error) error {
	for {
		if err := item(); err != nil || !p.tok.is(",") {
			return err
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}

// infix parses the rest of an expression after an operand and an operator.
func (p *parser) infix(t token, left Node) (Node, error) {
	at := Common{At: t.start}
	switch t.text {
	case "[":
		return p.bracket(left)
	case "{":
		return p.grouping(t, left)
	case "(":
		return p.call(t, left)
	case "?":
		return p.condition(t, left)
	case ":=":
		return p.assignment(t, left)
	case "^":
		return p.order(t, left)
	case "@":
		return nil, p.leftOut(t.start, "@", "joins (context binding @)", "write a block with a variable")
	case "#":
		return nil, p.leftOut(t.start, "#", "positional binding #", "write an index: list[0]")
	}
	power := t.power()
	if t.text == "??" || t.text == "?:" {
		power = 0 // the alternative extends as far as possible
	}
	right, err := p.expression(power)
	if err != nil {
		return nil, err
	}
	switch t.text {
	case ".":
		return p.step(left, right), nil
	case "~>":
		at.Keep = left.Shared().Keep || right.Shared().Keep
		return &Apply{at, left, right}, nil
	}
	return &Binary{at, t.text, left, right}, nil
}

func (p *parser) condition(t token, left Node) (Node, error) {
	n := &Condition{Common: Common{At: t.start}, Condition: left}
	var err error
	if n.Then, err = p.expression(0); err != nil || !p.tok.is(":") {
		return n, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n.Otherwise, err = p.expression(0)
	return n, err
}

func (p *parser) assignment(t token, left Node) (Node, error) {
	v, ok := left.(*Variable)
	if !ok || len(v.Filters) > 0 || v.Group != nil {
		e := p.fail(t.start, "S0212", ":=", `":=" needs a variable on its left`)
		e.Hint = "write $name := value"
		return nil, e
	}
	p.assigned[v.Name] = true
	value, err := p.expression(t.power() - 1)
	return &Bind{Common{At: t.start}, v.Name, value}, err
}

// call parses the arguments of a call after "(".
func (p *parser) call(t token, callee Node) (Node, error) {
	c := &Call{Common: Common{At: callee.Shared().At}, Function: callee}
	if p.tok.is(")") {
		return c, p.advance()
	}
	err := p.list(func() error {
		if p.tok.is("?") {
			c.Partial = true
			c.Args = append(c.Args, nil)
			return p.advance()
		}
		arg, err := p.expression(0)
		c.Args = append(c.Args, arg)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, p.expect(")")
}

// step combines the two operands of "." into a path.
func (p *parser) step(left, right Node) Node {
	path, ok := left.(*Path)
	if !ok {
		path = &Path{Common: Common{At: left.Shared().At}}
		p.addStep(path, left)
	}
	if rest, ok := right.(*Path); ok {
		path.Steps = append(path.Steps, rest.Steps...)
		path.KeepSingleton = path.KeepSingleton || rest.KeepSingleton
	} else {
		// A predicate of a step applies to the values of one item; otherwise it applies to the whole operand.
		c := right.Shared()
		c.Stages, c.Filters = c.Filters, nil
		p.addStep(path, right)
	}
	markWhole(path.Steps[0])
	markWhole(path.Steps[len(path.Steps)-1])
	return path
}

func (p *parser) addStep(path *Path, step Node) {
	path.KeepSingleton = path.KeepSingleton || step.Shared().Keep
	switch n := step.(type) {
	case *String: // a."b c" is a field
		step = &Name{Common: n.Common, Name: n.Text}
	case *Number:
		p.badStep(n.At, jsnumber.Format(n.Value))
	case *Const:
		text, _ := json.Marshal(n.Value) // true, false, null
		p.badStep(n.At, string(text))
	}
	path.Steps = append(path.Steps, step)
}

func (p *parser) badStep(at int, value string) {
	e := p.fail(at, "S0213", value, value+" cannot be a step of a path")
	e.Hint = fmt.Sprintf("write `%s` in backquotes if it is the name of a field, or [%s] for an item of an array",
		value, value)
	p.later(e)
}

func markWhole(step Node) {
	if a, ok := step.(*Array); ok {
		a.Whole = true
	}
}

// BeginsWhole reports whether a node is, or starts with, an array that isn't flattened.
func BeginsWhole(n Node) bool {
	switch n := n.(type) {
	case *Array:
		return n.Whole
	case *Block:
		return n.whole
	case *Path:
		return BeginsWhole(n.Steps[0])
	}
	return false
}

// bracket parses the rest after an operand and "[": a predicate, an index, or nothing, which keeps a sequence
// of one an array.
func (p *parser) bracket(left Node) (Node, error) {
	target := left
	path, isPath := left.(*Path)
	if isPath {
		target = path.Steps[len(path.Steps)-1]
	}
	c := target.Shared()
	if p.tok.is("]") {
		c.Keep = true
		if isPath {
			path.KeepSingleton = true
		}
		return left, p.advance()
	}
	at := p.tok.start
	predicate, err := p.expression(0)
	switch {
	case err != nil:
		return nil, err
	case c.Group != nil:
		p.later(p.fail(at, "S0209", "[", "a predicate cannot follow {…} that groups"))
	case isPath:
		c.Stages = append(c.Stages, predicate)
	default:
		c.Filters = append(c.Filters, predicate)
	}
	return left, p.expect("]")
}

// order parses the sort terms after an operand and "^".
func (p *parser) order(t token, left Node) (Node, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	step := &Sort{Common: Common{At: t.start}}
	err := p.list(func() error {
		term := SortTerm{Descending: p.tok.is(">")}
		if term.Descending || p.tok.is("<") {
			if err := p.advance(); err != nil {
				return err
			}
		}
		var err error
		term.By, err = p.expression(0)
		step.Terms = append(step.Terms, term)
		return err
	})
	if err != nil {
		return nil, err
	}
	path, ok := left.(*Path)
	if !ok {
		path = &Path{Common: Common{At: left.Shared().At}, Steps: []Node{left}, KeepSingleton: left.Shared().Keep}
	}
	path.Steps = append(path.Steps, step)
	return path, p.expect(")")
}

// grouping parses a group after an operand and "{".
func (p *parser) grouping(t token, left Node) (Node, error) {
	g, err := p.object(t)
	if err != nil {
		return nil, err
	}
	c := left.Shared()
	if c.Group != nil {
		p.later(p.fail(t.start, "S0210", "{", "only one {…} can group a step"))
	}
	c.Group = &g
	return left, nil
}

// lambda parses the rest of a function after "function".
func (p *parser) lambda(t token) (Node, error) {
	n := &Lambda{Common: Common{At: t.start}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !p.tok.is(")") {
		if err := p.list(func() error { return p.parameter(n) }); err != nil {
			return nil, err
		}
	}
	closing := p.tok.start
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if p.tok.is("<") {
		if err := p.signature(n); err != nil {
			return nil, err
		}
	}
	if !p.tok.is("{") {
		e := p.fail(p.tok.start, "S0202", "{", fmt.Sprintf("want a function body in {…}, got %s",
			p.tok.shown(p.src)))
		if p.tok.kind == endToken {
			e.Code, e.Message = "S0203", "the function has no body"
			e.Pos = Position(p.src, closing)
		}
		e.Hint = "write function($x){$x + 1}"
		return nil, e
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var err error
	if n.Body, err = p.expression(0); err != nil {
		return nil, err
	}
	return n, p.expect("}")
}

func (p *parser) parameter(n *Lambda) error {
	if p.tok.kind != variableToken {
		e := p.fail(p.tok.start, "S0208", p.tok.text, fmt.Sprintf("parameter %d of a function must be a variable, not %s",
			len(n.Params)+1, p.tok.shown(p.src)))
		if p.tok.kind == nameToken {
			e.Hint = "write $" + Shorten(p.tok.text, MaxShown)
		}
		return e
	}
	n.Params = append(n.Params, p.tok.text)
	p.assigned[p.tok.text] = true
	return p.advance()
}

// signature parses <s-n?:b>, which doesn't consist of tokens.
func (p *parser) signature(n *Lambda) error {
	start := p.tok.start
	length := strings.IndexByte(p.src[start:], '{')
	if length < 0 {
		length = len(p.src) - start
	}
	text := strings.TrimRight(p.src[start:start+length], spaces)
	if len(text) < 2 || text[len(text)-1] != '>' {
		return p.fail(start, "S0202", ">", "missing > after signature")
	}
	params, at, err := ParseSignature(text[1 : len(text)-1])
	if err != "" {
		return p.fail(start+1+at, err, "", "invalid signature: want a letter for each parameter, as in <s-n?:b>")
	}
	n.Signature = params
	p.at = start + len(text)
	return p.advance()
}

// Param is a parameter of a function. Kinds are letters, see [ParseSignature]; undefined ('m', missing) fits
// any parameter except a function.
type Param struct {
	Kinds    string
	Item     byte // required kind of an array's items, 0 for any
	Array    bool // any other value becomes an array of one
	Optional bool
	Context  bool // defaults to the context
	Many     bool // one or more
}

// ParseSignature parses JSONata's notation of parameters: s, n, b, l, o, a, f for one kind, x for any, j for
// any except functions, (sn) for a choice, a<s> for an array of strings; then "?" for optional, "-" for the
// context, "+" for one or more. The result type after ":" is ignored. On failure it returns an error code and
// the offset of the error.
func ParseSignature(text string) (params []Param, at int, code string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if strings.IndexByte("?-+<", c) >= 0 && len(params) == 0 {
			return nil, i, "S0401"
		}
		switch c {
		case ':':
			return params, 0, ""
		case ' ':
		case '?':
			params[len(params)-1].Optional = true
		case '-':
			params[len(params)-1].Context = true
		case '+':
			params[len(params)-1].Many = true
		case '<':
			end := closingAngle(text, i)
			last := &params[len(params)-1]
			if end < i+2 || !last.Array && last.Kinds != "f" {
				return nil, i, "S0401"
			}
			if last.Array {
				last.Item = text[i+1]
			}
			i = end
		case 'x', 'a', 'j':
			params = append(params, Param{Kinds: "asnblom", Array: c == 'a'})
			if c != 'j' {
				params[len(params)-1].Kinds += "f"
			}
		case 'f':
			params = append(params, Param{Kinds: "f"})
		case '(':
			length := strings.IndexByte(text[i:], ')')
			if length < 2 || strings.IndexByte(text[i:i+length], '<') > 0 {
				return nil, i, "S0402"
			}
			params = append(params, Param{Kinds: text[i+1:i+length] + "m"})
			i += length
		default:
			if strings.IndexByte("snblo", c) < 0 {
				return nil, i, "S0401"
			}
			params = append(params, Param{Kinds: string(c) + "m"})
		}
	}
	return params, 0, ""
}

// closingAngle returns the offset of the matching ">", or -1.
func closingAngle(text string, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
