package yamldoc

import (
	"encoding/json"
	"fmt"
)

// key reads a key of a block mapping in the given column, and its colon.
// Without a colon, which only the form "? key" allows, there is no value.
func (p *builder) key(column int) (e Entry, hasValue bool, err error) {
	t := p.peek()
	if t.kind == tokQuestion {
		return p.longKey(column)
	}
	if !p.atKey() {
		return e, false, p.noKey()
	}
	e, err = p.keyScalar()
	p.next() // the colon
	return e, true, err
}

// longKey reads a key after a question mark.
func (p *builder) longKey(column int) (e Entry, hasValue bool, err error) {
	mark := p.next()
	e.Pos = mark.pos
	if t := p.peek(); t.pos.Column > column && !t.endsDocument() {
		if p.atKey() {
			return e, false, p.fail("a key must be a single word or text, not a mapping")
		}
		if e, err = p.keyScalar(); err != nil {
			return e, false, err
		}
	}
	if t := p.peek(); t.kind != tokColon || t.pos.Column != column {
		return e, false, p.wantLineEnd()
	}
	p.next()
	return e, true, nil
}

// keyScalar reads the text of a key.
func (p *builder) keyScalar() (Entry, error) {
	t := p.peek()
	switch {
	case t.kind == tokMerge:
		return Entry{}, p.fail("merge keys (<<) are not supported; write the keys out")
	case t.kind == tokAlias:
		return Entry{}, p.fail("an alias cannot be a key")
	case t.kind == tokAnchor || t.kind == tokTag:
		return Entry{}, p.fail("a key cannot have an anchor or a tag")
	case t.kind != tokPlain && t.kind != tokQuoted:
		return Entry{}, p.fail("a key must be a single word or text, not a list or a mapping")
	case t.end != t.pos.Line:
		return Entry{}, p.fail("a key must be on one line; is something before it not closed, or indented wrongly?")
	}
	p.next()
	return Entry{Key: keyText(t), Text: t.text, Pos: t.pos}, nil
}

// noKey says what is wrong where a key was expected.
func (p *builder) noKey() error {
	switch t := p.peek(); t.kind {
	case tokColon:
		return p.fail("there is no key before this ':'")
	case tokDash:
		return p.fail("a list entry where a key is expected; check the indentation")
	case tokPlain, tokQuoted:
		return p.fail("a ':' is missing after this key, or the text belongs to the value before it and must be indented")
	case tokAnchor, tokTag:
		return p.fail("an anchor or a tag where a key is expected; a key cannot have one")
	}
	return p.fail("a key is expected here")
}

// keyText is what JavaScript makes of a key. A number that it cannot hold stays
// as it was written.
func keyText(t tok) string {
	if t.kind == tokQuoted {
		return t.text
	}
	switch v, msg := resolve(t.text); v := v.(type) {
	case nil:
		if msg == "" {
			return ""
		}
	case bool, int64, float64:
		// encoding/json writes numbers as JavaScript does.
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return t.text
}

// keySet finds keys that are there twice.
type keySet map[string]Pos

func (s keySet) add(e Entry) error {
	if first, ok := s[e.Key]; ok {
		return &Error{e.Pos, fmt.Sprintf("this key is already in line %d", first.Line), fmt.Sprintf("%q", e.Key)}
	}
	s[e.Key] = e.Pos
	return nil
}
