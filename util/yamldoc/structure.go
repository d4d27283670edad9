package yamldoc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// structure runs the library's parser to determine the tree structure; nil is an empty document. The parser
// gets tokens without their text, because it stores the path of keys for every node. A token's offset is its
// index.
func structure(toks []tok) (root ast.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("invalid YAML (%v)", p)}
		}
	}()
	file, err := parser.Parse(toLibrary(toks), 0, parser.AllowDuplicateMapKey())
	var at yaml.Error
	switch {
	case errors.As(err, &at):
		return nil, misplaced(toks, at.GetToken().Position.Offset)
	case err != nil:
		return nil, &Error{Pos: Pos{1, 1}, Message: "invalid YAML"}
	case len(file.Docs) == 0:
		return nil, nil
	}
	return file.Docs[0].Body, nil
}

// toLibrary converts tokens for the library's parser. The parser needs quadratic time for the keys of a mapping,
// so each key outside of brackets is passed as the only key of a list entry, with an additional dash in a
// column between its own and the previous one.
func toLibrary(toks []tok) token.Tokens {
	all := make(token.Tokens, 0, len(toks)*3/2)
	depth, line := 0, 0
	add := func(kind token.Type, column, offset int) {
		if depth > 0 || toks[offset].kind == tokMissing { // its position matters only to the parser
			column = 1<<30 + offset
		}
		position := &token.Position{Line: line, Column: column, Offset: offset}
		all = append(all, &token.Token{Type: kind, Value: "x", Origin: "x", Position: position})
	}
	for i, t := range toks[:len(toks)-1] {
		kind, column := t.kind, 4*t.pos.Column+1
		if depth == 0 {
			line = t.pos.Line
		}
		switch {
		case t.closes():
			depth--
		case t.kind == tokDash:
			column++ // a list can start in the column of its key
		case depth == 0 && (t.kind == tokQuestion || (i == 0 || toks[i-1].kind != tokQuestion) && atKey(toks, i, false)):
			add(tokDash, column-1, i)
		}
		if t.complete() && !t.closes() || t.kind == tokMissing {
			kind = token.StringType
		}
		add(kind, column, i)
		if t.opens() {
			depth++
		}
	}
	return all
}

// misplaced explains a token that the library rejects. Everything else has been checked, so the only cause is
// its indentation.
func misplaced(toks []tok, i int) error {
	switch t := toks[i]; {
	case t.kind == tokDash:
		return failAt(t, "a list entry where a key is expected; check the indentation")
	case t.kind == tokQuestion || atKey(toks, i, false):
		return failAt(t, fmt.Sprintf("this starts in column %d, but the entries before it in column %s", t.pos.Column,
			columns(toks, i)))
	case t.words():
		return failAt(t, "a ':' is missing after this key, or the text belongs to the value before it and must be indented")
	default:
		return failAt(t, "unexpected text; check the indentation and the quotes")
	}
}

// columns lists the columns of entries that can continue before the token at i.
func columns(toks []tok, i int) string {
	var all []string
	least, brackets := 1<<30, 0
	for i--; i >= 0; i-- {
		switch t := toks[i]; {
		case t.closes():
			brackets++
		case t.opens():
			brackets--
		case brackets == 0 && t.pos.Column < least && (t.kind == tokDash || atKey(toks, i, false)):
			least = t.pos.Column
			all = append(all, fmt.Sprint(least))
		}
	}
	slices.Reverse(all)
	return strings.Join(all, " or ")
}

// grammar processes the tokens before the library's parser sees them. It rejects invalid sequences
// (adjacent.go) and unsupported parts of YAML with clear messages, enforces the bounds on the parser's work,
// and inserts a tokMissing for a missing value. It removes anchors and tags, which become properties of the
// first token of their value.
type grammar struct {
	toks   []tok
	bounds Bounds
	out    []tok
	open   []tok // brackets
	levels []int // columns of the open block collections
	parent int   // column of the key or dash for the next value
	short  bool  // that key has no '?', so a list can start in its column
	props  properties
}

// check returns the tokens of the single document.
func check(toks []tok, b Bounds) ([]tok, error) {
	toks, err := document(toks)
	if err != nil {
		return nil, err
	}
	g := &grammar{toks: toks, bounds: b, out: make([]tok, 0, len(toks))}
	for i := range toks {
		if err := g.take(i); err != nil {
			return nil, err
		}
	}
	return g.out, nil
}

// document removes the tokens before and after the document, except a "---".
func document(toks []tok) ([]tok, error) {
	if toks[0].kind == tokDirective {
		if toks = toks[1:]; toks[0].kind != tokDocStart {
			return nil, failAt(toks[0], "a line '---' must follow the directive")
		}
	}
	n := slices.IndexFunc(toks[1:], tok.endsDocument) + 1
	if toks[0].kind != tokDocStart && toks[0].endsDocument() {
		n = 0
	}
	rest := toks[n:]
	if rest[0].kind == tokDocEnd {
		rest = rest[1:]
	}
	if rest[0].kind != tokEnd {
		return nil, failAt(rest[0], "a second document starts here; only one is allowed")
	}
	toks[n] = rest[0]
	return toks[:n+1], nil
}

func failAt(t tok, msg string) error { return &Error{Pos: t.pos, Message: msg} }

// take processes one token.
func (g *grammar) take(i int) error {
	t := g.toks[i]
	if t.kind == tokDocStart {
		return nil
	}
	if t.kind == tokEnd && len(g.open) > 0 {
		return failAt(g.open[0], fmt.Sprintf("unclosed bracket %s", g.open[0].text))
	}
	if msg := g.beside(i); msg != "" {
		if last := g.before(i); msg == complete && last.kind == tokQuoted && last.end > last.pos.Line {
			return failAt(last, fmt.Sprintf("the quote that opens here is only closed in line %d", last.end))
		}
		return failAt(t, msg)
	}
	g.fill(i)
	if t.property() {
		return g.property(t)
	}
	if msg := g.nest(i); msg != "" {
		return failAt(t, msg)
	}
	g.emit(t)
	return nil
}

// before returns the token before the one at i, or a tokDocStart.
func (g *grammar) before(i int) tok {
	if i == 0 {
		return tok{kind: tokDocStart}
	}
	return g.toks[i-1]
}

// property processes an anchor or a tag.
func (g *grammar) property(t tok) error {
	switch {
	case t.kind == tokAnchor && g.props.anchor == "":
		g.props.anchor, g.props.pos = t.text[1:], t.pos
		return nil
	case t.kind == tokTag && g.props.tag == "":
		g.props.tag = t.text
		return checkTag(t)
	}
	return failAt(t, "a value can have one anchor and one tag")
}

// fill inserts a tokMissing before the token at i if a value is missing there.
func (g *grammar) fill(i int) {
	t, last := g.toks[i], g.before(i)
	belongs := t.pos.Column > g.parent || g.short && t.kind == tokDash && t.pos.Column == g.parent
	missing := tok{kind: tokMissing, pos: last.pos, end: last.end}
	switch {
	case last.words() && i > 1 && g.toks[i-2].kind == tokQuestion && t.kind != tokColon:
		g.emit(tok{kind: tokColon, pos: last.pos, end: last.end})
	case last.kind != tokDash && last.kind != tokColon && !last.property():
		return
	case len(g.open) > 0:
		if t.kind != tokComma && !t.closes() {
			return
		}
		if last.kind == tokColon {
			missing.pos = g.toks[i-2].pos
		}
	case t.kind != tokEnd && (t.pos.Line == last.end || belongs):
		return
	}
	g.emit(missing)
}

func (g *grammar) emit(t tok) {
	t.props, g.props = g.props, properties{}
	g.out = append(g.out, t)
}

// nest tracks brackets and columns, and reports an exceeded bound.
func (g *grammar) nest(i int) string {
	t := g.toks[i]
	if t.opens() {
		g.open = append(g.open, t)
	} else if t.closes() {
		g.open = g.open[:len(g.open)-1]
	}
	if len(g.open) == 0 {
		switch {
		case t.kind == tokDash, t.kind == tokQuestion, atKey(g.toks, i, false):
			for len(g.levels) > 0 && g.levels[len(g.levels)-1] >= t.pos.Column {
				g.levels = g.levels[:len(g.levels)-1]
			}
			g.levels = append(g.levels, t.pos.Column)
			g.parent, g.short = t.pos.Column, t.kind != tokDash && t.kind != tokQuestion
		case t.kind == tokColon && t.pos.Line > g.before(i).end:
			g.parent, g.short = t.pos.Column, false
		}
	}
	if len(g.open)+len(g.levels) > g.bounds.Depth+1 {
		return fmt.Sprintf("nested deeper than %d", g.bounds.Depth)
	}
	return ""
}

const (
	noValue   = "there is no value before this; if it is text, put it in quotes"
	noKey     = "there is no key before this ':'"
	noComma   = "a ',' or the closing bracket is missing before this"
	complete  = "the value before this is complete; if both are one text, put all of it in quotes"
	keyNoText = "a key must be a single word or text, not a list or a mapping"
)

// beside explains why the token at i can't follow the previous one; "" if it can.
func (g *grammar) beside(i int) string {
	t, last, flow := g.toks[i], g.before(i), len(g.open) > 0
	same := flow || t.pos.Line == last.end
	key := atKey(g.toks, i, flow)
	begins := key || t.kind == tokDash || t.kind == tokQuestion // a collection
	entry := last.kind == tokComma || last.opens()
	switch {
	case t.kind == tokEnd:
	case t.kind == tokColon && flow:
		return g.flowColon(i)
	case t.kind == tokColon:
		return g.colon(i, same)
	case flow && t.closes():
		if (t.kind == tokCloseSeq) != (g.open[len(g.open)-1].kind == tokOpenSeq) {
			return noComma
		}
	case flow && t.kind == tokComma && !entry:
	case flow && last.complete():
		return noComma
	case same && last.complete():
		return complete
	case t.kind == tokComma || t.closes() || flow && t.kind == tokDash:
		return noValue
	case flow && t.kind == tokBlock:
		return "a block after '|' or '>' is not allowed in brackets"
	case last.property() && t.kind == tokAlias && !key:
		return "an alias cannot have an anchor or a tag"
	case last.property() && same && begins:
		return "put the anchor or tag of a list or mapping on the line before it; on a key it is not supported"
	case last.kind == tokDocStart && same && begins:
		return "only a single value is allowed on the line of '---'"
	case last.kind == tokColon && same && begins && !flow && g.short:
		if t.kind == tokDash {
			return "a list with dashes must start on a new line"
		}
		return "a second 'key:' on one line; put the value in quotes, or start a new line"
	case t.kind == tokQuestion:
		return g.longKey(i)
	case key:
		return badKey(t)
	case t.kind == tokMerge:
		return "merge keys (<<) are not supported; put '<<' in quotes if it is text"
	case flow && entry && g.open[len(g.open)-1].kind == tokOpenMap && !t.property():
		return badKey(t)
	}
	return ""
}

// colon explains why a colon can't be at i, outside of brackets.
func (g *grammar) colon(i int, same bool) string {
	switch last := g.before(i); {
	case same && last.words():
		return ""
	case same && last.complete():
		return keyNoText
	case i > 1 && g.toks[i-2].kind == tokQuestion && g.toks[i-2].pos.Column == g.toks[i].pos.Column:
		return ""
	}
	return noKey
}

// flowColon is colon inside brackets.
func (g *grammar) flowColon(i int) string {
	switch last := g.before(i); {
	case last.closes():
		return keyNoText
	case !last.words():
		return noKey
	case g.toks[i-2].kind == tokColon:
		return noComma
	case last.kind == tokPlain && g.toks[i].adjoins:
		return "within brackets, put a space after this ':', or put the whole text in quotes"
	}
	return ""
}

// longKey reports a problem with a key after the question mark at i.
func (g *grammar) longKey(i int) string {
	key := g.toks[i+1]
	if len(g.open) > 0 || key.pos.Column <= g.toks[i].pos.Column || atKey(g.toks, i+1, false) {
		return keyNoText
	}
	return badKey(key)
}

// badKey explains why a token can't be a key.
func badKey(t tok) string {
	switch {
	case t.kind == tokMerge:
		return "merge keys (<<) are not supported; repeat the keys instead"
	case t.kind == tokAlias:
		return "an alias cannot be a key"
	case !t.words():
		return keyNoText
	case t.end != t.pos.Line:
		return "a key must be on one line; is something before it not closed, or indented wrongly?"
	}
	return ""
}

// guard rejects texts for which the library's lexer would need quadratic time or much memory. It counts
// characters regardless of context, with limits far above realistic files; the actual bounds are enforced on
// the tokens and while building the tree.
func guard(text string, b Bounds) error {
	for _, mark := range []string{"[", "{", ",", "- ", "? ", ": "} {
		if strings.Count(text, mark) > 4*b.Nodes {
			return &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("more than %d values", b.Nodes)}
		}
	}
	for _, pair := range []string{"[]", "{}"} { // a bracket costs the library a kilobyte
		if strings.Count(text, pair[:1])-strings.Count(text, pair[1:]) > 100*b.Depth {
			return &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("nested deeper than %d", b.Depth)}
		}
	}
	c := cost{size: len(text)}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if msg := c.add(strings.TrimSuffix(line, "\n")); msg != "" {
			return &Error{Pos: Pos{n, 1}, Message: msg}
		}
	}
	return nil
}

// lexerBudget bounds the work of the library's lexer, in character visits; 250 million take about 0.1 s.
const lexerBudget = 250_000_000

// cost estimates the quadratic work of the library's lexer.
type cost struct {
	size   int // of the text
	blanks int // blank lines directly before this one
	visits int
}

// add returns an error once a line makes the text too expensive.
func (c *cost) add(line string) string {
	if strings.Trim(line, " ") == "" {
		c.blanks++
		// The library removes blank lines from a block scalar one at a time and copies all of it each time,
		// which costs more than a visit.
		if 5*c.blanks*c.size > lexerBudget {
			return "too many blank lines in a row for a text of this size"
		}
		return ""
	}
	c.blanks = 0
	// In double quotes, every tab causes a search for the end of its line.
	c.visits += strings.Count(line, "\t") * len(line)
	// Every '<' causes a count of the run that it starts.
	c.visits += longestRun(line, '<') * strings.Count(line, "<")
	if c.visits > lexerBudget {
		return "too many tabs or '<' in long lines"
	}
	return ""
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// clean validates the bytes of a text and removes a byte order mark. It converts line endings to LF and adds
// one at the end, which the library handles best.
func clean(src []byte, b Bounds) (string, error) {
	if len(src) > b.Bytes {
		return "", &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("the text has %d bytes; the limit is %d", len(src), b.Bytes)}
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	pos := Pos{1, 1}
	for i, r := range text {
		if msg := forbidden(text[i:], r); msg != "" {
			return "", &Error{Pos: pos, Message: msg}
		}
		pos = pos.after(r)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// forbidden explains why a character isn't allowed in YAML.
func forbidden(rest string, r rune) string {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(rest, "\ufffd"):
		return fmt.Sprintf("the byte 0x%02X is not UTF-8 text", rest[0])
	case r == '\t' || r == '\n':
		return ""
	case r < ' ' || r == 0x7f:
		return fmt.Sprintf("the control character U+%04X is not allowed; in double quotes it can be written as \\x%02X", r, r)
	case r == '\ufeff':
		return "a byte order mark is only allowed at the start of the text"
	}
	return ""
}

// after returns the position after the character r at p.
func (p Pos) after(r rune) Pos {
	if r == '\n' {
		return Pos{p.Line + 1, 1}
	}
	return Pos{p.Line, p.Column + 1}
}
