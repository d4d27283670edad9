package jsonata

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
	"github.com/united-workforce/uwf/util/lazyregexp"
)

func (c *call) toString() (any, error) {
	indent := ""
	if pretty, _ := c.args[1].(bool); pretty {
		indent = "  "
	}
	return c.textOf(c.args[0], indent)
}

func (c *call) textOf(v any, indent string) (any, error) {
	text, err := c.text(v, indent)
	if err != nil {
		return nil, err
	}
	return text, nil
}

func (c *call) length() (any, error) {
	return float64(runes(c.textArg(0))), nil
}

// substring counts in characters. A negative start counts from the end.
func (c *call) substring() (any, error) {
	text := c.textArg(0)
	length := float64(runes(text))
	start, end := c.num(1, 0), length
	if length+start < 0 {
		start = 0
	}
	if !c.missing(2) {
		n := c.num(2, 0)
		if n <= 0 {
			return "", nil
		}
		end = start + n
		if start < 0 {
			end += length
		}
	}
	return c.made(slice(text, start, end, length))
}

// slice returns characters of a text, like JavaScript's slice.
func slice(text string, start, end, length float64) string {
	bound := func(place float64) int {
		place = math.Trunc(place)
		if place < 0 {
			place += length
		}
		if math.IsNaN(place) {
			place = 0
		}
		return int(min(max(place, 0), length))
	}
	from, to := bound(start), bound(end)
	if from >= to {
		return ""
	}
	return text[byteAt(text, from):byteAt(text, to)]
}

// byteAt returns the byte offset of a character.
func byteAt(text string, character int) int {
	for i := range text {
		if character == 0 {
			return i
		}
		character--
	}
	return len(text)
}

func (c *call) substringBefore() (any, error) {
	if c.missing(1) {
		return c.args[0], nil
	}
	before, _, _ := strings.Cut(c.textArg(0), c.textArg(1))
	return c.made(before)
}

func (c *call) substringAfter() (any, error) {
	if c.missing(1) {
		return c.args[0], nil
	}
	_, after, found := strings.Cut(c.textArg(0), c.textArg(1))
	if !found {
		return c.args[0], nil
	}
	return c.made(after)
}

func (c *call) lowercase() (any, error) {
	return c.made(strings.ToLower(c.textArg(0)))
}

func (c *call) uppercase() (any, error) {
	return c.made(strings.ToUpper(c.textArg(0)))
}

// trim also collapses each run of whitespace to one space.
func (c *call) trim() (any, error) {
	words := strings.FieldsFunc(c.textArg(0), func(r rune) bool { return strings.ContainsRune(" \t\n\r", r) })
	return c.made(strings.Join(words, " "))
}

// pad pads a text on the right, or on the left if the width is negative.
func (c *call) pad() (any, error) {
	text, filler := c.textArg(0), c.textArg(2)
	if filler == "" {
		filler = " "
	}
	width := c.num(1, 0)
	wanted := math.Trunc(math.Abs(width)) - float64(runes(text))
	if !(wanted > 0) {
		return text, nil
	}
	if wanted > float64(c.e.limits.MaxBytes) {
		return nil, c.write(c.e.limits.MaxBytes + 1)
	}
	if err := c.write(int(wanted) + len(text)); err != nil {
		return nil, err
	}
	length := float64(runes(filler))
	padding := strings.Repeat(filler, int(wanted/length)) + slice(filler, 0, math.Mod(wanted, length), length)
	if width < 0 {
		return padding + text, nil
	}
	return text + padding, nil
}

func (c *call) join() (any, error) {
	l, separator := asList(c.args[0]), c.textArg(1)
	pieces := make([]string, l.len())
	size := 0
	for i := range pieces {
		pieces[i], _ = l.item(i).(string)
		size += len(pieces[i]) + len(separator)
		if size > c.e.limits.MaxBytes {
			break // made reports the error
		}
	}
	if err := c.write(size); err != nil {
		return nil, err
	}
	return strings.Join(pieces, separator), nil
}

func (c *call) toNumber() (any, error) {
	switch v := c.args[0].(type) {
	case undefined:
		return v, nil
	case bool:
		if v {
			return 1.0, nil
		}
		return 0.0, nil
	case string:
		if f, ok := parseNumber(v); ok {
			return f, nil
		}
		return nil, c.fail("D3030", "%s is not a number", describe(v))
	}
	return c.args[0], nil
}

// parseNumber accepts JSON numbers, leading zeros, and the prefixes 0x, 0o and 0b.
func parseNumber(text string) (float64, bool) {
	if decimal().MatchString(text) {
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil && isFinite(f)
	}
	if len(text) < 3 || text[0] != '0' {
		return 0, false
	}
	base := map[byte]int{'x': 16, 'o': 8, 'b': 2}[text[1]|0x20]
	if base == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:], base, 64)
	return float64(n), err == nil
}

// decimal excludes other forms that ParseFloat accepts.
var decimal = lazyregexp.New(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// numeric calls a function of one number.
func (c *call) numeric(f func(float64) float64) (any, error) {
	return f(c.num(0, 0)), nil
}

func (c *call) abs() (any, error)   { return c.numeric(math.Abs) }
func (c *call) floor() (any, error) { return c.numeric(math.Floor) }
func (c *call) ceil() (any, error)  { return c.numeric(math.Ceil) }

// round rounds half to even.
func (c *call) round() (any, error) {
	places := int(max(min(c.num(1, 0), 400), -400))
	return c.numeric(func(f float64) float64 { return shift(math.RoundToEven(shift(f, places)), -places) })
}

// shift multiplies by a power of ten in decimal notation, which is exact.
func shift(f float64, places int) float64 {
	if places == 0 || !isFinite(f) {
		return f
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	n, err := strconv.Atoi(exponent)
	if err != nil {
		return f
	}
	// Out of range, ParseFloat returns 0 or infinity, which is the correct value.
	shifted, _ := strconv.ParseFloat(mantissa+"e"+strconv.Itoa(n+places), 64)
	return shifted
}

func (c *call) power() (any, error) {
	base, exponent := c.num(0, 0), c.num(1, math.NaN())
	f := math.Pow(base, exponent)
	if !isFinite(f) || math.IsNaN(exponent) {
		return nil, c.fail("D3061", "%s to the power of %s is not a JSON number", jsnumber.Format(base),
			jsnumber.Format(exponent))
	}
	return f, nil
}

func (c *call) sqrt() (any, error) {
	if c.num(0, 0) < 0 {
		return nil, c.fail("D3060", "%s has no square root", describe(c.args[0]))
	}
	return c.numeric(math.Sqrt)
}

func (c *call) formatBase() (any, error) {
	radix := math.RoundToEven(c.num(1, 10))
	if !(radix >= 2 && radix <= 36) {
		return nil, c.fail("D3100", "the base must be from 2 to 36, not %s", describe(c.args[1]))
	}
	f := math.RoundToEven(c.num(0, 0))
	if math.Abs(f) > 1<<53 || math.IsNaN(f) {
		return nil, c.fail("D3100", "%s is too large for another base", jsnumber.Format(f))
	}
	return strconv.FormatInt(int64(f), int(radix)), nil
}

// numbers returns the items of an argument that is an array of numbers.
func (c *call) numbers() ([]float64, error) {
	l := asList(c.args[0])
	if err := c.spend(l.len()); err != nil {
		return nil, err
	}
	numbers := make([]float64, l.len())
	for i := range numbers {
		numbers[i], _ = jsnumber.Float(l.item(i))
	}
	return numbers, nil
}

func (c *call) sum() (any, error) {
	numbers, err := c.numbers()
	total := 0.0
	for _, f := range numbers {
		total += f
	}
	return total, err
}

// fold applies a function to a non-empty list of numbers; an empty list has no value.
func (c *call) fold(f func(numbers []float64) float64) (any, error) {
	numbers, err := c.numbers()
	if err != nil || len(numbers) == 0 {
		return undefined{}, err
	}
	return f(numbers), nil
}

func (c *call) average() (any, error) {
	return c.fold(func(numbers []float64) float64 {
		total := 0.0
		for _, f := range numbers {
			total += f
		}
		return total / float64(len(numbers))
	})
}

// rounded formats a number as $string does: 15 digits, so that 0.1 + 0.2 is 0.3; integers keep all digits.
func rounded(f float64) float64 {
	if f == math.Trunc(f) {
		return f
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 15, 64), 64)
	if err != nil {
		return f // rounding up overflowed
	}
	return short
}

// json formats a value as JSON.
func (s site) json(v any, indent string, exact bool) ([]byte, error) {
	p := &printer{site: s, indent: indent, exact: exact}
	if err := p.print(v, 1); err != nil {
		return p.buf, err
	}
	return p.buf, p.pay(1)
}

// printer formats a value as JSON.
type printer struct {
	site   site
	buf    []byte
	indent string // of one level; "" for a single line
	exact  bool   // for comparison: all digits, and sorted keys
	paid   int    // bytes of buf already accounted for
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
		return p.site.fail("D1001", "%s is not a JSON number", jsnumber.Format(f))
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

// pay accounts for the bytes written since the last call.
func (p *printer) pay(depth int) error {
	err := cmp.Or(p.site.deep(depth), p.site.spend(1), p.site.write(len(p.buf)-p.paid))
	p.paid = len(p.buf)
	return err
}

func runes(s string) int { return utf8.RuneCountInString(s) }
