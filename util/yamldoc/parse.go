package yamldoc

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// parser reads a document by recursive descent. Each function begins at its first token and ends after its
// last one; values are separated by [parser.space]. The first error ends the text, so that all functions
// return.
type parser struct {
	text    string // its last character is a line feed
	at      int    // offset of the unread text
	pos     Pos    // position of at
	line    int    // offset of its line
	err     error
	bounds  Bounds
	answer  bool // see [ParseAnswer]
	begun   bool // a token was read
	closed  bool // the last token ends a value that cannot continue
	nodes   int
	aliases int
	anchors map[string]*Node // nil while the node is being read
	levels  []int            // columns of the open block collections
}

// fail reports an error at the unread text.
func (p *parser) fail(msg string) { p.failAt(p.pos, msg, "") }

func (p *parser) failAt(at Pos, msg, quote string) {
	if p.err == nil {
		p.err = &Error{at, msg, quote}
	}
	p.at = len(p.text)
}

// column returns the indentation of at, from 0. It is in bytes, which differ from characters only where
// nothing but a scalar can begin.
func (p *parser) column() int { return p.at - p.line }

// move goes forward n bytes.
func (p *parser) move(n int) {
	for i, r := range p.text[p.at : p.at+n] {
		if p.pos = p.pos.after(r); r == '\n' {
			p.line = p.at + i + 1
		}
	}
	p.at += n
}

// take is move over a token. closed means that it ends a value that cannot continue.
func (p *parser) take(n int, closed bool) {
	p.move(n)
	p.begun, p.closed = true, closed
}

const white = " \t\n"

// byteAt returns the byte at an offset; the end of the text counts as a line feed.
func (p *parser) byteAt(at int) byte {
	if at >= len(p.text) {
		return '\n'
	}
	return p.text[at]
}

// is reports whether the byte at an offset is one of set.
func (p *parser) is(at int, set string) bool { return strings.IndexByte(set, p.byteAt(at)) >= 0 }

// lineEnd returns the length of the rest of the line.
func (p *parser) lineEnd() int { return strings.IndexByte(p.text[p.at:], '\n') }

// space skips whitespace and comments, and reports whether a line ended.
func (p *parser) space() bool {
	line := p.pos.Line
	for p.at < len(p.text) {
		switch {
		case p.is(p.at, white):
			p.move(1)
		case p.text[p.at] != '#' || p.isText(p.at):
			return p.pos.Line > line
		case p.at > 0 && !p.is(p.at-1, white):
			p.fail("a comment must have a space before its '#'")
		case p.answer && p.begun && !p.closed && !p.is(p.at+1, white):
			p.fail("this '#' may start a text or a comment; put the text in quotes, or a space after the '#' of a comment")
		default:
			p.move(p.lineEnd())
		}
	}
	return true
}

// isText reports whether a '#' that starts a comment in YAML is text in an answer. After a closing quote or
// bracket it isn't, because only a comment can follow there.
func (p *parser) isText(at int) bool {
	if !p.answer || at == 0 || !p.is(at-1, " \t[{,") || p.is(at+1, white) {
		return false
	}
	before := strings.TrimRight(p.text[p.line:at], " \t")
	return before != "" && strings.IndexByte(`"']}`, before[len(before)-1]) < 0
}

// marker reports whether a line "---" or "..." begins here.
func (p *parser) marker(mark string) bool {
	return p.column() == 0 && strings.HasPrefix(p.text[p.at:], mark) && p.is(p.at+3, white)
}

// ended reports whether the document ends here.
func (p *parser) ended() bool { return p.at == len(p.text) || p.marker("---") || p.marker("...") }

// indicator reports whether one of the bytes in set is next, and whitespace after it.
func (p *parser) indicator(set string) bool { return p.is(p.at, set) && p.is(p.at+1, white) }

// document reads the only document.
func (p *parser) document() *Node {
	p.space()
	if p.is(p.at, "%") && p.column() == 0 {
		if name, _, _ := strings.Cut(p.text[p.at:], " "); name != "%YAML" {
			p.fail("directives other than %YAML are not supported")
		}
		p.take(max(p.lineEnd(), 0), true)
		if p.space(); !p.marker("---") {
			p.fail("a line '---' must follow the directive")
		}
	}
	in := place{parent: -1, depth: 1, missing: Pos{1, 1}}
	if p.marker("---") {
		in.after = afterMark
		p.take(3, false)
	}
	root := p.node(in)
	p.space()
	second := p.marker("---")
	if p.marker("...") {
		p.take(3, true)
		p.space()
		second = true
	}
	switch {
	case p.at == len(p.text):
	case second:
		p.fail("a second document starts here; only one is allowed")
	case root.Kind == Sequence && !root.flow:
		p.fail(noDash)
	default:
		p.fail("unexpected text; check the indentation and the quotes")
	}
	return root
}

// place is where a value is read outside of brackets.
type place struct {
	parent  int // column of the key or dash before the value; -1 at the root
	after   int // the kind of the token before the value
	depth   int
	missing Pos // of a missing value
}

const (
	afterNothing = iota
	afterMark    // ---
	afterKey
)

const (
	noValue     = "there is no value before this; if it is text, put it in quotes"
	noKey       = "there is no key before this ':'"
	noComma     = "a ',' or the closing bracket is missing before this"
	noDash      = "a key or a text where a list entry is expected; check the indentation"
	noTab       = "a tab before this is not allowed; use spaces"
	keyNoText   = "a key must be a single word or text, not a list or a mapping"
	keyProperty = "an anchor or a tag where a key is expected; a key cannot have one"
)

// node reads a value outside of brackets, which can be missing.
func (p *parser) node(in place) *Node {
	var props properties
	same := true // on the line of the token before it
	for {
		same = !p.space() && same
		switch {
		case p.ended() || !same && !p.belongs(in):
			return p.missing(in.missing, props)
		case !same && p.tabbed(in.parent):
			p.fail(noTab)
		case p.is(p.at, "&!"):
			in.missing, same = p.pos, true
			p.property(&props, "")
			continue
		}
		break
	}
	switch {
	case p.indicator("-"):
		in.begin(p, p.pos, same, true, props)
		return p.list(props, in.depth)
	case p.indicator("?"):
		in.begin(p, p.pos, same, false, props)
		return p.mapping(props, in.depth, nil)
	case p.is(p.at, "[{"):
		n := p.flow(props, in.depth)
		if p.colon("") {
			p.fail(keyNoText)
		}
		p.rest(p.pos)
		return n
	}
	t := p.token(in.parent, "")
	if t.kind != tokBlock && p.colon("") {
		in.begin(p, t.pos, same, false, props)
		return p.mapping(props, in.depth, &t)
	}
	n := p.leaf(props, t, in.depth)
	if t.kind != tokBlock {
		p.rest(t.pos)
	}
	return n
}

// tabbed reports whether a tab is part of what indents a line more than its parent.
func (p *parser) tabbed(parent int) bool {
	before := p.text[p.line:p.at]
	return strings.Contains(before, "\t") && len(before)-len(strings.TrimLeft(before, " ")) <= parent
}

// belongs reports whether what starts a line here is the value of a key or dash before it.
func (p *parser) belongs(in place) bool {
	return p.column() > in.parent || in.after == afterKey && p.column() == in.parent && p.indicator("-")
}

// begin reports a list or mapping that can't begin at a position. same means on the line of the token before
// it.
func (in place) begin(p *parser, at Pos, same, list bool, props properties) {
	switch {
	case !same:
	case props.any():
		p.failAt(at, "put the anchor or tag of a list or mapping on the line before it; on a key it is not supported", "")
	case in.after == afterMark:
		p.failAt(at, "only a single value is allowed on the line of '---'", "")
	case in.after == afterKey && list:
		p.failAt(at, "a list with dashes must start on a new line", "")
	case in.after == afterKey:
		p.failAt(at, "a second 'key:' on one line; put the value in quotes, or start a new line", "")
	}
}

// rest checks that nothing but a comment follows a value that began at a position.
func (p *parser) rest(from Pos) {
	line := p.pos.Line
	switch {
	case p.space():
	case from.Line < line:
		p.failAt(from, fmt.Sprintf("the quote that opens here is only closed in line %d", line), "")
	default:
		p.fail("the value before this is complete; if both are one text, put all of it in quotes")
	}
}

// collection returns a list or a mapping that begins with a token.
func (p *parser) collection(kind Kind, props properties, depth int, at tok) *Node {
	n := &Node{Kind: kind, Pos: at.pos, from: at.from}
	if depth > p.bounds.Depth {
		p.failAt(at.pos, fmt.Sprintf("nested deeper than %d", p.bounds.Depth), "")
	}
	props.collection(p, n)
	return n
}

// here returns an empty token.
func (p *parser) here() tok { return tok{pos: p.pos, from: p.at, end: p.pos.Line} }

// entries calls read for each entry of a collection that begins in a column, outside of brackets. read
// returns false before an entry that belongs to the mapping around the collection.
func (p *parser) entries(at tok, column int, read func() bool) {
	if strings.Contains(p.text[at.from-column:at.from], "\t") {
		p.failAt(at.pos, noTab, "")
	}
	p.levels = append(p.levels, column)
	for read() && p.next(column) {
	}
	p.levels = p.levels[:len(p.levels)-1]
}

// next goes to the next entry of a collection in a column, if there is one.
func (p *parser) next(column int) bool {
	p.space()
	switch at := p.column(); {
	case p.ended():
		return false
	case strings.Contains(p.text[p.line:p.at], "\t"):
		p.fail(noTab)
	case at > column || !slices.Contains(p.levels, at):
		var all []string
		for _, level := range slices.Compact(slices.Clone(p.levels)) {
			all = append(all, fmt.Sprint(level+1))
		}
		p.fail(fmt.Sprintf("this starts in column %d, but the entries before it in column %s", at+1, strings.Join(all, " or ")))
	default:
		return at == column
	}
	return false
}

// list reads the entries after dashes in this column.
func (p *parser) list(props properties, depth int) *Node {
	column := p.column()
	n := p.collection(Sequence, props, depth, p.here())
	p.entries(p.here(), column, func() bool {
		if !p.indicator("-") {
			if outer := len(p.levels) - 2; outer < 0 || p.levels[outer] != column {
				p.fail(noDash)
			}
			return false
		}
		in := place{parent: column, depth: depth + 1, missing: p.pos}
		p.take(1, false)
		n.Items = append(n.Items, p.node(in))
		return true
	})
	return p.finish(n, props)
}

// mapping reads the entries of a mapping, of which the first key can be read already, up to its colon.
func (p *parser) mapping(props properties, depth int, first *tok) *Node {
	at := p.here()
	if first != nil {
		at = *first
		p.checkKey(at)
	}
	if p.err != nil {
		return &Node{}
	}
	n := p.collection(Mapping, props, depth, at)
	column := at.from - p.line
	p.entries(at, column, func() bool {
		n.Entries = append(n.Entries, p.pair(column, depth, first))
		first = nil
		return true
	})
	return p.finish(n, props)
}

// pair reads a key, which can be read already, and its value.
func (p *parser) pair(column, depth int, first *tok) Entry {
	in := place{parent: column, after: afterKey, depth: depth + 1}
	var key tok
	switch {
	case first != nil:
		key = *first
	case p.indicator("?"):
		in.after = afterNothing
		key = p.longKey(column)
	default:
		key = p.key()
	}
	p.checkKey(key)
	if in.missing = p.pos; !p.indicator(":") || in.after != afterKey && p.column() != column {
		return entry(key, p.at, p.missing(key.pos, properties{})) // "? key"
	}
	p.take(1, false)
	after := p.at
	return entry(key, after, p.node(in))
}

func entry(key tok, after int, value *Node) Entry {
	return Entry{Key: keyText(key), Text: key.text, Pos: key.pos, Value: value, from: key.from, after: after}
}

// oneLine as the column of a token's parent ends an unquoted text with its line.
const oneLine = 1 << 30

// key reads the next key of a mapping, up to its colon.
func (p *parser) key() tok {
	switch {
	case p.indicator("-"):
		p.fail("a list entry where a key is expected; check the indentation")
	case p.is(p.at, "&!"):
		p.fail(keyProperty)
	case p.is(p.at, "[{"):
		p.fail(keyNoText)
	}
	t := p.token(oneLine, "")
	if !p.colon("") {
		p.failAt(t.pos, "a ':' is missing after this key, or the text belongs to the value before it and must be indented", "")
	}
	return t
}

// longKey reads a key after '?', up to its colon, if it has one.
func (p *parser) longKey(column int) tok {
	p.take(1, false)
	if below := p.space() && p.column() <= column; below || p.ended() || p.is(p.at, "[{&!") || p.indicator("-?") {
		p.fail(keyNoText)
	}
	t := p.token(oneLine, "")
	if p.colon("") {
		p.failAt(t.pos, keyNoText, "")
	}
	if t.kind != tokBlock {
		p.rest(t.pos)
	}
	p.space()
	return t
}

// checkKey reports a token that can't be a key.
func (p *parser) checkKey(t tok) {
	switch {
	case t.kind == tokPlain && t.text == "<<":
		p.failAt(t.pos, "merge keys (<<) are not supported; repeat the keys instead", "")
	case t.kind == tokAlias:
		p.failAt(t.pos, "an alias cannot be a key", "")
	case t.kind == tokBlock, t.kind == tokNone:
		p.failAt(t.pos, keyNoText, "")
	case t.end != t.pos.Line:
		p.failAt(t.pos, "a key must be on one line; is something before it not closed, or indented wrongly?", "")
	}
}

// brackets are the characters that end a text within brackets.
const brackets = ",[]{}"

// colon skips blanks and reports whether the colon of a key is next. within is [brackets] within them.
func (p *parser) colon(within string) bool {
	at := p.at
	for p.is(at, " \t") {
		at++
	}
	if p.byteAt(at) != ':' || !p.is(at+1, white+within) && !(within != "" && p.closed) {
		return false
	}
	p.move(at - p.at)
	return true
}

// flow reads a list or a mapping in brackets.
func (p *parser) flow(props properties, depth int) *Node {
	at, kind, end := p.here(), Sequence, "]"
	if p.is(p.at, "{") {
		kind, end = Mapping, "}"
	}
	n := p.collection(kind, props, depth, at)
	n.flow = true
	p.take(min(1, len(p.text)-p.at), false)
	for value := false; ; { // whether a value is before this
		p.space()
		switch {
		case p.ended():
			p.failAt(at.pos, "unclosed bracket "+p.text[at.from:at.from+1], "")
			return n
		case p.is(p.at, end):
			p.take(1, true)
			return p.finish(n, props)
		case value && p.is(p.at, ","):
			p.take(1, false)
			value = false
			continue
		case value || p.is(p.at, "]}"):
			p.fail(noComma)
		case p.is(p.at, ","):
			p.fail(noValue)
		case kind == Mapping:
			n.Entries = append(n.Entries, p.flowEntry(depth+1))
		default:
			n.Items = append(n.Items, p.flowItem(depth+1))
		}
		value = true
	}
}

// flowItem reads an entry of a list in brackets: a value, or a single key with its value.
func (p *parser) flowItem(depth int) *Node {
	var props properties
	at := p.here()
	item, key := p.flowNode(&props, depth, p.pos)
	if p.space(); !p.colon(brackets) {
		return item
	}
	switch {
	case props.any():
		p.failAt(at.pos, keyProperty, "")
	case key.end > key.pos.Line:
		p.fail(noComma)
	}
	n := p.collection(Mapping, properties{}, depth, at)
	n.flow = true
	n.Entries = []Entry{p.flowValue(key, depth+1)}
	return p.finish(n, properties{})
}

// flowEntry reads a key in braces, and its value if it has one.
func (p *parser) flowEntry(depth int) Entry {
	switch {
	case p.is(p.at, "&!"):
		p.fail(keyProperty)
	case p.is(p.at, "[{"), p.indicator("?"):
		p.fail(keyNoText)
	}
	key := p.token(0, brackets)
	p.checkKey(key)
	if p.space(); p.colon(brackets) {
		return p.flowValue(key, depth)
	}
	if i := strings.IndexByte(key.text, ':'); i >= 0 && key.kind == tokPlain {
		key.pos.Column += utf8.RuneCountInString(key.text[:i])
		p.failAt(key.pos, "within brackets, put a space after this ':', or put the whole text in quotes", "")
	}
	return entry(key, p.at, p.missing(key.pos, properties{}))
}

// flowValue reads the colon and the value of a key in brackets.
func (p *parser) flowValue(key tok, depth int) Entry {
	p.checkKey(key)
	if p.err == nil {
		p.take(1, false)
	}
	after := p.at
	p.space()
	value, _ := p.flowNode(&properties{}, depth, key.pos)
	return entry(key, after, value)
}

// flowNode reads a value within brackets, and the token that it is if it is a scalar, which can be a key.
func (p *parser) flowNode(props *properties, depth int, missing Pos) (*Node, tok) {
	for p.is(p.at, "&!") {
		missing = p.pos
		p.property(props, brackets)
		p.space()
	}
	at := p.here()
	switch {
	case p.ended() || p.is(p.at, ",]}"):
		return p.missing(missing, *props), tok{pos: p.pos}
	case p.is(p.at, "[{"):
		return p.flow(*props, depth), at
	case p.indicator("?"):
		p.fail(keyNoText)
	}
	t := p.token(0, brackets)
	return p.leaf(*props, t, depth), t
}

// leaf converts a token to its value.
func (p *parser) leaf(props properties, t tok, depth int) *Node {
	switch {
	case p.err != nil:
		return &Node{}
	case t.kind == tokAlias && props.any():
		p.failAt(t.pos, "an alias cannot have an anchor or a tag", "")
	case t.kind == tokAlias:
		return p.alias(t, depth)
	case t.kind == tokPlain && t.text == "<<":
		p.failAt(t.pos, "merge keys (<<) are not supported; put '<<' in quotes if it is text", "")
	}
	n := props.scalar(p, t)
	n.from, n.to = t.from, t.to
	return p.finish(n, props)
}

// missing returns the null of a missing value.
func (p *parser) missing(at Pos, props properties) *Node {
	n := &Node{Pos: at}
	switch tag := props.tag; {
	case isLocal(tag):
		n.Tag, n.Scalar = tag, ""
	case tag == "!" || tag == "!!str":
		n.Scalar = ""
	case tag != "" && tag != "!!null":
		p.failAt(at, "the value of this tag is missing", tag)
	}
	return p.finish(n, props)
}

// property reads an anchor or a tag.
func (p *parser) property(props *properties, within string) {
	at := p.pos
	if p.is(p.at, "!") {
		if props.tag != "" {
			p.fail("a value can have one anchor and one tag")
			return
		}
		n := strings.IndexAny(p.text[p.at:], white+within)
		props.tag = p.text[p.at : p.at+n]
		checkTag(p, props.tag)
		p.take(min(n, len(p.text)-p.at), false)
		return
	}
	name := p.name()
	switch outer, known := p.anchors[name]; {
	case props.anchor != "":
		p.failAt(at, "a value can have one anchor and one tag", "")
	case known && outer == nil:
		p.failAt(at, "a value inside the anchored one repeats its anchor; give either another name", "&"+name)
	}
	props.anchor = name
	p.anchors[name] = nil // until its value is known
}

// name reads the name of an anchor or alias after its sign.
func (p *parser) name() string {
	n := strings.IndexAny(p.text[p.at:], white+brackets)
	if n < 2 || p.is(p.at+n, "[{") {
		p.fail(fmt.Sprintf("a name of letters and digits is missing after '%c'", p.text[p.at]))
		return ""
	}
	name := p.text[p.at+1 : p.at+n]
	p.take(n, false)
	return name
}

// finish completes a node.
func (p *parser) finish(n *Node, props properties) *Node {
	if n.size = 1; n.Kind != Scalar {
		n.height = 1
	}
	lines := make(map[string]int, len(n.Entries))
	for _, e := range n.Entries {
		if line, ok := lines[e.Key]; ok {
			p.failAt(e.Pos, fmt.Sprintf("this key is already in line %d", line), fmt.Sprintf("%q", e.Key))
		}
		lines[e.Key] = e.Pos.Line
		n.add(e.Value)
		n.to = max(n.to, e.after)
	}
	for _, item := range n.Items {
		n.add(item)
	}
	if n.flow {
		n.to = p.at
	}
	if props.anchor != "" {
		p.anchors[props.anchor] = n
	}
	p.count(n.Pos, 1)
	return n
}

// add adds a child's size to that of its parent.
func (n *Node) add(child *Node) {
	n.size += child.size
	n.height = max(n.height, child.height+1)
	n.to = max(n.to, child.to)
}

// count charges values to the budget.
func (p *parser) count(at Pos, values int) {
	if p.nodes += values; p.nodes > p.bounds.Nodes {
		p.failAt(at, fmt.Sprintf("more than %d values, counting expanded aliases", p.bounds.Nodes), "")
	}
}

// alias returns the node of its anchor with the alias's position.
func (p *parser) alias(t tok, depth int) *Node {
	target, known := p.anchors[t.text[1:]]
	p.aliases++
	switch {
	case !known:
		p.failAt(t.pos, "there is no anchor of this name before the alias", t.text)
	case target == nil:
		p.failAt(t.pos, "the alias stands within what it refers to", t.text)
	case p.aliases > p.bounds.Aliases:
		p.failAt(t.pos, fmt.Sprintf("more than %d aliases", p.bounds.Aliases), "")
	case depth-1+target.height > p.bounds.Depth:
		p.failAt(t.pos, fmt.Sprintf("nested deeper than %d, counting the expanded alias", p.bounds.Depth), "")
	default:
		p.count(t.pos, target.size)
		n := *target
		n.Pos, n.from, n.to = t.pos, t.from, t.to
		return &n
	}
	return &Node{}
}
