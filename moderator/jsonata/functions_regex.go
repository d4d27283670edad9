package jsonata

import (
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// regexFunction returns the value of a regular expression: a function that returns the first match in a text,
// with a function for the next one.
func regexFunction(r *syntax.Regex) *function {
	return &function{
		name: "/" + syntax.Shorten(r.Source, syntax.MaxShown) + "/", params: []syntax.Param{{Kinds: "sm"}}, takes: 1,
		regex: r,
		run: func(c *call) (any, error) {
			if c.missing(0) {
				return undefined{}, nil
			}
			m, err := c.find(r, c.textArg(0))
			return c.matchObject(r, m, err)
		},
	}
}

func (c *call) matchObject(r *syntax.Regex, m *match, err error) (any, error) {
	if m == nil || err != nil {
		return undefined{}, err
	}
	groups, err := c.groupList(m)
	if err != nil {
		return nil, err
	}
	o := &Object{}
	o.Set("match", m.found())
	o.Set("start", float64(m.index))
	o.Set("end", float64(m.index+runes(m.found())))
	o.Set("groups", groups)
	o.Set("next", &function{name: "next", free: true, hidden: true, run: func(c *call) (any, error) {
		next, err := c.findNext(r, m)
		return c.matchObject(r, next, err)
	}})
	return o, c.spend(5 * stepsPerKey)
}

// pattern returns an argument that must be a regular expression.
func (c *call) pattern(i int) (*syntax.Regex, error) {
	if f := c.function(i); f.regex != nil {
		return f.regex, nil
	}
	return nil, c.fail("T1010", "argument %d of %s must be a regular expression, not %s", i+1, c.token,
		describe(c.args[i]))
}

// forMatches visits the matches in the first argument, up to a limit.
func (c *call) forMatches(r *syntax.Regex, limit float64, visit func(m *match) error) error {
	m, err := c.find(r, c.textArg(0))
	for n := 0.0; err == nil && m != nil && n < limit; n++ {
		if err = c.spend(stepsPerObject); err != nil {
			return err
		}
		if err = visit(m); err == nil {
			m, err = c.findNext(r, m)
		}
	}
	return err
}

// limit returns an argument that bounds the number of repetitions.
func (c *call) limit(i int, code string) (float64, error) {
	limit := c.num(i, math.Inf(1))
	if limit < 0 {
		return 0, c.fail(code, "argument %d of %s must not be negative", i+1, c.token)
	}
	return limit, nil
}

func (c *call) match() (any, error) {
	r, err := c.pattern(1)
	if err != nil {
		return nil, err
	}
	limit, err := c.limit(2, "D3040")
	if err != nil {
		return nil, err
	}
	out := &list{seq: true}
	return out, c.forMatches(r, limit, func(m *match) error {
		groups, err := c.groupList(m)
		if err != nil {
			return err
		}
		o := &Object{}
		o.Set("match", m.found())
		o.Set("index", float64(m.index))
		o.Set("groups", groups)
		if err := c.spend(3 * stepsPerKey); err != nil {
			return err
		}
		return c.push(out, o)
	})
}

func (c *call) contains() (any, error) {
	switch part := c.args[1].(type) {
	case string:
		return strings.Contains(c.textArg(0), part), nil
	case *function:
		r, err := c.pattern(1)
		if err != nil {
			return nil, err
		}
		m, err := c.find(r, c.textArg(0))
		return m != nil, err
	}
	return undefined{}, nil
}

func (c *call) split() (any, error) {
	limit, err := c.limit(2, "D3020")
	if err != nil {
		return nil, err
	}
	text, out := c.textArg(0), &list{vals: []any{}}
	start := 0
	add := func(from, to int) error {
		if float64(out.len()) >= limit {
			return nil
		}
		if err := c.spend(1); err != nil {
			return err
		}
		return c.push(out, text[from:to])
	}
	switch separator := c.args[1].(type) {
	case undefined:
		return out, add(0, len(text))
	case string:
		return out, splitText(text, separator, math.Trunc(limit), add)
	}
	r, err := c.pattern(1)
	if err != nil {
		return nil, err
	}
	err = c.forMatches(r, limit, func(m *match) error {
		err := add(start, m.start())
		start = m.end()
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, add(start, len(text))
}

// splitText calls piece with the bounds of each piece. An empty separator splits between all characters.
func splitText(text, separator string, limit float64, piece func(from, to int) error) error {
	from := 0
	for n := 0.0; n < limit; n++ {
		to := strings.Index(text[from:], separator)
		if separator == "" {
			if from == len(text) {
				return nil
			}
			_, to = utf8.DecodeRuneInString(text[from:])
		}
		if to < 0 {
			return piece(from, len(text))
		}
		if err := piece(from, from+to); err != nil {
			return err
		}
		from += to + len(separator)
	}
	return nil
}

func (c *call) replace() (any, error) {
	if c.missing(1) || c.missing(2) {
		return undefined{}, nil
	}
	limit, err := c.limit(3, "D3011")
	if err != nil {
		return nil, err
	}
	if old, ok := c.args[1].(string); ok {
		return c.replaceText(old, limit)
	}
	r, err := c.pattern(1)
	if err != nil {
		return nil, err
	}
	text := c.textArg(0)
	var out strings.Builder
	from := 0
	err = c.forMatches(r, limit, func(m *match) error {
		with, err := c.replacement(r, m)
		if err != nil {
			return err
		}
		kept := text[from:m.start()]
		if err := c.write(len(kept) + len(with)); err != nil {
			return err
		}
		out.WriteString(kept)
		out.WriteString(with)
		from = m.end()
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.WriteString(text[from:])
	return out.String(), c.write(len(text) - from)
}

func (c *call) replaceText(old string, limit float64) (any, error) {
	replacement, ok := c.args[2].(string)
	switch {
	case old == "":
		return nil, c.fail("D3010", "argument 2 of $replace must not be empty")
	case !ok:
		return nil, c.fail("D3012", "argument 3 of $replace must be a string if argument 2 is one")
	}
	text := c.textArg(0)
	times := int(min(float64(strings.Count(text, old)), math.Ceil(limit)))
	if err := c.write(len(text) + times*len(replacement)); err != nil {
		return nil, err
	}
	return strings.Replace(text, old, replacement, times), nil
}

// replacement returns the replacement of a match: the result of a function, or a text in which $1 is a group,
// $0 the match and $$ a dollar sign.
func (c *call) replacement(r *syntax.Regex, m *match) (string, error) {
	if f := c.function(2); f != nil {
		o, err := c.matchObject(r, m, nil)
		if err != nil {
			return "", err
		}
		v, err := c.callback(f, o)
		if err != nil {
			return "", err
		}
		if text, ok := v.(string); ok {
			return text, nil
		}
		return "", c.fail("D3012", "the function of $replace must return a string, not %s", describe(v))
	}
	var out strings.Builder
	rest := c.textArg(2)
	for {
		before, after, found := strings.Cut(rest, "$")
		out.WriteString(before)
		if !found {
			return out.String(), c.write(out.Len())
		}
		if err := c.spend(1); err != nil {
			return "", err
		}
		number, digits := groupNumber(after, m.groups())
		switch {
		case strings.HasPrefix(after, "$"):
			digits = 1
			out.WriteByte('$')
		case digits == 0:
			out.WriteByte('$')
		default:
			text, _ := m.group(number).(string)
			out.WriteString(text)
		}
		if out.Len() > c.e.limits.MaxBytes {
			return "", c.write(out.Len())
		}
		rest = after[digits:]
	}
}

// groupNumber parses a group number: as many digits as the number of groups has, or one fewer if that group
// doesn't exist.
func groupNumber(text string, groups int) (number, digits int) {
	for digits = min(len(strconv.Itoa(groups)), len(text)); digits > 0; digits-- {
		n, err := strconv.ParseUint(text[:digits], 10, 16)
		if err == nil && (int(n) <= groups || digits == 1) {
			return int(n), digits
		}
	}
	return 0, 0
}

// match is a match of a regular expression in a text.
type match struct {
	text   string
	places []int // byte offsets of the match, then of each group; -1 for a group that didn't match
	index  int   // of its first character
}

func (m *match) start() int    { return m.places[0] }
func (m *match) end() int      { return m.places[1] }
func (m *match) groups() int   { return len(m.places)/2 - 1 }
func (m *match) found() string { return m.text[m.start():m.end()] }

// group returns the text of a group; undefined if it didn't match or doesn't exist.
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

// find returns the first match, or nil.
func (s site) find(r *syntax.Regex, text string) (*match, error) {
	in := &counted{site: s, text: text, cost: r.Cost}
	places := r.First.FindReaderSubmatchIndex(in)
	if in.err != nil || places == nil {
		return nil, in.err
	}
	return &match{text, places, runes(text[:places[0]])}, nil
}

// findNext returns the next match, or nil.
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
	return s.fail("D1004", "the regular expression /%s/ matches an empty string", syntax.Shorten(r.Source,
		syntax.MaxShown))
}

// counted is a reader for a regular expression that charges a step for each character.
type counted struct {
	site site
	text string
	at   int
	cost int
	err  error
}

// ReadRune ends the text when the limit is reached.
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
