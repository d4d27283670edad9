package yamldoc

import (
	"fmt"
	"slices"
)

// grammar goes over the tokens once, before the library's parser sees them. It
// refuses, in plain words, what cannot stand side by side (adjacent.go), and all
// of YAML that we do not read; it holds the bounds on what the parser does; it
// puts a tokMissing where a value is missing, and takes anchors and tags out of
// the way: they become properties of the token that their value begins with.
type grammar struct {
	toks   []tok
	bounds Bounds
	out    []tok
	open   []tok // brackets
	levels []int // columns of the block collections that are not complete
	parent int   // column of the key or dash whose value comes next
	short  bool  // that is a key without a '?', so a list may stand in its column
	props  properties
}

// check returns the tokens of the one document.
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

// document takes off what stands before and behind the document, but for a "---".
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
		return nil, failAt(rest[0], "a second document begins here; only one is allowed")
	}
	toks[n] = rest[0]
	return toks[:n+1], nil
}

func failAt(t tok, msg string) error { return &Error{Pos: t.pos, Message: msg} }

// take reads one token.
func (g *grammar) take(i int) error {
	t := g.toks[i]
	if t.kind == tokDocStart {
		return nil
	}
	if t.kind == tokEnd && len(g.open) > 0 {
		return failAt(g.open[0], fmt.Sprintf("the bracket %s is never closed", g.open[0].text))
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

// before is the token before the one at i, a tokDocStart if there is none.
func (g *grammar) before(i int) tok {
	if i == 0 {
		return tok{kind: tokDocStart}
	}
	return g.toks[i-1]
}

// property reads an anchor or a tag.
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

// fill puts a tokMissing before the token at i if the value that should be
// there is not.
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

// nest follows the brackets and the columns, and says what is beyond the bounds.
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
