package jsonata

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// rounded is a number as $string shows it: 15 digits, so that 0.1 + 0.2 is 0.3;
// whole numbers have all their digits.
func rounded(f float64) float64 {
	if f == math.Trunc(f) {
		return f
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 15, 64), 64)
	if err != nil {
		return f // out of range by rounding up
	}
	return short
}

// json writes a value as JSON.
func (s site) json(v any, indent string, exact bool) ([]byte, error) {
	p := &printer{site: s, indent: indent, exact: exact}
	if err := p.print(v, 1); err != nil {
		return p.buf, err
	}
	return p.buf, p.pay(1)
}

// printer writes a value as JSON.
type printer struct {
	site   site
	buf    []byte
	indent string // of one level, "" for one line
	exact  bool   // for comparing: all digits, and keys in order
	paid   int    // bytes of buf that have been accounted for
}

func (p *printer) print(v any, depth int) error {
	if err := p.pay(depth); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil, undefined:
		p.buf = append(p.buf, "null"...)
		return nil
	case bool:
		p.buf = strconv.AppendBool(p.buf, v)
		return nil
	case string:
		p.buf = syntax.AppendQuoted(p.buf, v)
		return nil
	}
	if f, ok := jsnumber.Float(v); ok {
		return p.number(f)
	}
	if l, ok := listOf(v); ok {
		return p.group('[', ']', l.len(), depth, func(i int) error { return p.print(l.item(i), depth+1) })
	}
	keys, ok := keysOf(v)
	if !ok { // a function
		p.buf = append(p.buf, '"', '"')
		return nil
	}
	if p.exact {
		keys = slices.Sorted(slices.Values(keys))
	}
	return p.group('{', '}', len(keys), depth, func(i int) error {
		p.buf = append(syntax.AppendQuoted(p.buf, keys[i]), ':')
		if p.indent != "" {
			p.buf = append(p.buf, ' ')
		}
		return p.print(member(v, keys[i]), depth+1)
	})
}

func (p *printer) number(f float64) error {
	if !isFinite(f) {
		return p.site.fail("D1001", "%s is no number that JSON can hold", jsnumber.Format(f))
	}
	if !p.exact {
		f = rounded(f)
	}
	p.buf = append(p.buf, jsnumber.Format(f)...)
	return nil
}

func (p *printer) group(open, closing byte, n, depth int, item func(i int) error) error {
	p.buf = append(p.buf, open)
	for i := range n {
		if i > 0 {
			p.buf = append(p.buf, ',')
		}
		p.newLine(depth)
		if err := item(i); err != nil {
			return err
		}
	}
	if n > 0 {
		p.newLine(depth - 1)
	}
	p.buf = append(p.buf, closing)
	return nil
}

func (p *printer) newLine(depth int) {
	if p.indent == "" {
		return
	}
	p.buf = append(p.buf, '\n')
	for range depth {
		p.buf = append(p.buf, p.indent...)
	}
}

// pay accounts for what was written, before more is.
func (p *printer) pay(depth int) error {
	if err := p.site.deep(depth); err != nil {
		return err
	}
	if err := p.site.spend(1); err != nil {
		return err
	}
	err := p.site.write(len(p.buf) - p.paid)
	p.paid = len(p.buf)
	return err
}

// runes counts characters without an array of them.
func runes(s string) int { return utf8.RuneCountInString(s) }
