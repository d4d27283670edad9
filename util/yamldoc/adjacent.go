package yamldoc

const (
	noValue   = "there is no value before this; if it is text, put it in quotes"
	noKey     = "there is no key before this ':'"
	noComma   = "a ',' or the closing bracket is missing before this"
	complete  = "the value before this is complete; if both are one text, put all of it in quotes"
	keyNoText = "a key must be a single word or text, not a list or a mapping"
)

// beside says why the token at i cannot stand behind the one before it; "" if it
// can.
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
		return "a block after '|' or '>' cannot stand within brackets"
	case last.property() && t.kind == tokAlias && !key:
		return "an alias cannot have an anchor or a tag"
	case last.property() && same && begins:
		return "an anchor or a tag for a whole list or mapping must stand on the line before it; on a key it is not supported"
	case last.kind == tokDocStart && same && begins:
		return "only a single value can stand on the line of '---'"
	case last.kind == tokColon && same && begins && !flow && g.short:
		if t.kind == tokDash {
			return "a list with dashes must begin on a new line"
		}
		return "a second 'key:' on one line; put the value in quotes, or begin a new line"
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

// colon says why there cannot be a colon at i, outside of brackets.
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

// flowColon is colon within brackets.
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

// longKey says what is wrong with a key after the question mark at i.
func (g *grammar) longKey(i int) string {
	key := g.toks[i+1]
	if len(g.open) > 0 || key.pos.Column <= g.toks[i].pos.Column || atKey(g.toks, i+1, false) {
		return keyNoText
	}
	return badKey(key)
}

// badKey says why a token cannot be a key.
func badKey(t tok) string {
	switch {
	case t.kind == tokMerge:
		return "merge keys (<<) are not supported; write the keys out"
	case t.kind == tokAlias:
		return "an alias cannot be a key"
	case !t.words():
		return keyNoText
	case t.end != t.pos.Line:
		return "a key must be on one line; is something before it not closed, or indented wrongly?"
	}
	return ""
}
