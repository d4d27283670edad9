package jsonata

import (
	"io"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// match is what a regular expression found in a text: places in bytes.
type match struct {
	text   string
	places []int // from and to of the whole, then of each group; -1 if it took no part
	index  int   // of its first character
}

func (m *match) start() int    { return m.places[0] }
func (m *match) end() int      { return m.places[1] }
func (m *match) groups() int   { return len(m.places)/2 - 1 }
func (m *match) found() string { return m.text[m.start():m.end()] }

// group is the text of a group; undefined if it did not take part or does not exist.
func (m *match) group(number int) any {
	if number > m.groups() || m.places[2*number] < 0 {
		return undefined{}
	}
	return m.text[m.places[2*number]:m.places[2*number+1]]
}

func (s site) groupList(m *match) (*list, error) {
	out := &list{vals: make([]any, m.groups())}
	for i := range out.vals {
		out.vals[i] = m.group(i + 1)
	}
	return out, s.grow(1 + m.groups())
}

// find searches a text for a regular expression, nil if it is not there.
func (s site) find(r *syntax.Regex, text string) (*match, error) {
	in := &counted{site: s, text: text, cost: r.Cost}
	places := r.First.FindReaderSubmatchIndex(in)
	if in.err != nil || places == nil {
		return nil, in.err
	}
	return &match{text, places, runes(text[:places[0]])}, nil
}

// findNext searches the rest of the text after a match; nil if there is no other match.
func (s site) findNext(r *syntax.Regex, m *match) (*match, error) {
	if m.end() >= len(m.text) {
		return nil, nil
	}
	if m.start() == m.end() {
		return nil, s.emptyMatch(r)
	}
	_, width := utf8.DecodeLastRuneInString(m.text[:m.end()])
	from := m.end() - width
	in := &counted{site: s, text: m.text[from:], cost: r.Cost}
	places := r.Next.FindReaderSubmatchIndex(in)
	if in.err != nil || places == nil {
		return nil, in.err
	}
	places = places[2:]
	for i := range places {
		if places[i] >= 0 {
			places[i] += from
		}
	}
	if places[0] == places[1] {
		return nil, s.emptyMatch(r)
	}
	return &match{m.text, places, m.index + runes(m.text[m.start():places[0]])}, nil
}

func (s site) emptyMatch(r *syntax.Regex) *Error {
	return s.fail("D1004", "the regular expression /%s/ finds an empty text, again and again", syntax.Shorten(r.Source, syntax.MaxShown))
}

// counted reads a text for a regular expression and accounts for each
// character.
type counted struct {
	site site
	text string
	at   int
	cost int
	err  error
}

// ReadRune ends the text where the bound is reached.
func (c *counted) ReadRune() (rune, int, error) {
	if c.err == nil {
		c.err = c.site.spend(c.cost)
	}
	if c.err != nil || c.at == len(c.text) {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRuneInString(c.text[c.at:])
	c.at += size
	return r, size, nil
}
