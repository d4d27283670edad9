// Package yamltext writes YAML for people: in a given order, short collections
// on one line, long texts as blocks. What it writes reads back as the same value
// (package yamldoc), whatever the strings hold; the YAML library's own writer
// loses tabs and carriage returns.
//
// A string is written plain only if it is plainly safe, as a block only if that
// keeps every character, and else in double quotes.
package yamltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width is the column that lines keep within, as far as they can be broken.
const Width = 100

// Map is a mapping in the order to write.
type Map []Entry

// Entry is a key with its value.
type Entry struct {
	Key   string
	Value any
	Blank bool // an empty line before it, in a mapping that takes several lines
}

// List is a sequence.
type List []any

// Marshal writes a value: nil, bool, a string, a number (int, int64, float64,
// json.Number), [Map], [List], or []any and map[string]any, whose keys are
// sorted. Anything else is an error.
func Marshal(v any) ([]byte, error) { return marshal(v, Width) }

// MarshalWide is Marshal with every collection that may stand on one line there, however
// long that is: only such a one may be added to a collection on one line.
func MarshalWide(v any) ([]byte, error) { return marshal(v, math.MaxInt) }

func marshal(v any, width int) ([]byte, error) {
	p := &printer{width: width}
	if err := p.value(v, 0, atLineStart); err != nil {
		return nil, err
	}
	return []byte(p.out.String()), nil
}

type printer struct {
	out   strings.Builder
	width int // of collections on one line
}

// cursor is where a value begins: a scalar goes behind a key or a dash, a
// collection begins on the next line, but behind a dash on the same one.
type cursor int

const (
	atLineStart cursor = iota
	behindKey
	behindDash
)

// value writes a value whose own lines, if it has any, are indented by indent.
func (p *printer) value(v any, indent int, at cursor) error {
	v = ordered(v)
	if at != atLineStart {
		if line, ok := flow(v); ok && p.column()+1+len([]rune(line)) <= p.width {
			p.out.WriteString(" " + line + "\n")
			return nil
		}
	}
	switch v := v.(type) {
	case Map:
		return p.mapping(v, indent, at)
	case List:
		return p.sequence(v, indent, at)
	}
	s, err := scalar(v, max(indent, 2))
	if err != nil {
		return err
	}
	if at != atLineStart {
		p.out.WriteByte(' ')
	}
	p.out.WriteString(s + "\n")
	return nil
}

// column is how many characters the current line has.
func (p *printer) column() int {
	s := p.out.String()
	return len([]rune(s[strings.LastIndexByte(s, '\n')+1:]))
}

func (p *printer) mapping(m Map, indent int, at cursor) error {
	if len(m) == 0 {
		return p.empty("{}", at)
	}
	for i, e := range m {
		if e.Blank && i > 0 {
			p.out.WriteByte('\n')
		}
		p.begin(indent, at, i)
		p.out.WriteString(key(e.Key) + ":")
		if err := p.value(e.Value, indent+2, behindKey); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
	}
	return nil
}

func (p *printer) sequence(l List, indent int, at cursor) error {
	if len(l) == 0 {
		return p.empty("[]", at)
	}
	for i, item := range l {
		p.begin(indent, at, i)
		p.out.WriteByte('-')
		if err := p.value(item, indent+2, behindDash); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) empty(s string, at cursor) error {
	if at != atLineStart {
		s = " " + s
	}
	p.out.WriteString(s + "\n")
	return nil
}

// begin begins the i-th line of a collection.
func (p *printer) begin(indent int, at cursor, i int) {
	switch {
	case i == 0 && at == behindDash:
		p.out.WriteByte(' ')
		return
	case i == 0 && at == behindKey:
		p.out.WriteByte('\n')
	}
	p.out.WriteString(strings.Repeat(" ", indent))
}

// ordered gives Go's own collections an order.
func ordered(v any) any {
	switch v := v.(type) {
	case []any:
		return List(v)
	case map[string]any:
		m := make(Map, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			m = append(m, Entry{Key: k, Value: v[k]})
		}
		return m
	}
	return v
}

// flow is a collection on one line, if it is simple enough to be read so: a
// mapping of scalars and lists of scalars, or a list of scalars.
func flow(v any) (string, bool) {
	switch v := v.(type) {
	case Map:
		parts := make([]string, len(v))
		for i, e := range v {
			item := ordered(e.Value)
			if _, nested := item.(Map); nested {
				return "", false
			}
			s, ok := flowItem(item)
			if !ok {
				return "", false
			}
			parts[i] = key(e.Key) + ": " + s
		}
		return braces("{ ", parts, " }"), true
	case List:
		parts := make([]string, len(v))
		for i, item := range v {
			s, ok := flowScalar(ordered(item))
			if !ok {
				return "", false
			}
			parts[i] = s
		}
		return braces("[", parts, "]"), true
	}
	return "", false
}

func flowItem(v any) (string, bool) {
	if l, ok := v.(List); ok {
		return flow(l)
	}
	return flowScalar(v)
}

func flowScalar(v any) (string, bool) {
	switch s := v.(type) {
	case Map, List:
		return "", false
	case string:
		switch {
		case strings.Contains(s, "\n"):
			return "", false
		case isPlain(s) && !strings.Contains(s, ","):
			return s, true
		}
		return quote(s), true
	}
	s, err := number(v)
	return s, err == nil
}

func braces(open string, parts []string, end string) string {
	if len(parts) == 0 {
		return strings.TrimSpace(open) + strings.TrimSpace(end)
	}
	return open + strings.Join(parts, ", ") + end
}

// number writes what is no string and no collection.
func number(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case bool, int, int64, float64, json.Number:
		data, err := json.Marshal(v)
		return string(data), err
	}
	return "", fmt.Errorf("yamltext: cannot write a %T", v)
}

// scalar writes a scalar; the lines of a block are indented by indent.
func scalar(v any, indent int) (string, error) {
	s, ok := v.(string)
	switch {
	case !ok:
		return number(v)
	case isPlain(s) && utf8.RuneCountInString(s) <= Width-indent:
		return s, nil
	case isLiteral(s):
		return literal(s, indent), nil
	case isFoldable(s) && utf8.RuneCountInString(s) > Width-indent:
		return folded(s, indent), nil
	}
	return quote(s), nil
}

// key quotes a key that is not a plain word.
func key(s string) string {
	if isPlain(s) && !strings.Contains(s, ",") {
		return s
	}
	return quote(s)
}

// quote writes a JSON string, without HTML escapes, as no browser reads this,
// but with escapes for all that cannot be seen: YAML forbids some of it.
func quote(s string) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // cannot happen for a string
		return strconv.Quote(s)
	}
	var b strings.Builder
	for _, r := range strings.TrimSuffix(buf.String(), "\n") {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// isPlain is stricter than YAML: a letter, '/', '$' or '_' first, no character
// that could mean something, and no word that reads as another type.
func isPlain(s string) bool {
	switch strings.ToLower(s) {
	case "", "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return false
	}
	first, _ := utf8.DecodeRuneInString(s)
	if !(first <= unicode.MaxASCII && unicode.IsLetter(first)) && !strings.ContainsRune("/$_", first) {
		return false
	}
	for _, r := range s {
		if !unicode.IsLetter(r) && !(r >= '0' && r <= '9') && !strings.ContainsRune(" -_./$@()+=,;'", r) {
			return false
		}
	}
	return !strings.HasSuffix(s, " ")
}

// isLiteral reports whether a text of several lines survives as a literal block:
// printable, no tab or carriage return, no line that ends with a space, and a
// first line that shows the indentation.
func isLiteral(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasPrefix(s, "\n") || strings.HasPrefix(s, " ") {
		return false
	}
	return !strings.HasSuffix(s, " ") && !strings.Contains(s, " \n") && printable(s)
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// literal writes a literal block with the chomping that keeps the line ends.
func literal(s string, indent int) string {
	head := "|-"
	switch {
	case strings.HasSuffix(s, "\n\n"):
		head = "|+"
	case strings.HasSuffix(s, "\n"):
		head = "|"
	}
	return block(head, strings.Split(strings.TrimSuffix(s, "\n"), "\n"), indent)
}

// isFoldable reports whether a text of one line can be broken at its spaces.
func isFoldable(s string) bool {
	return strings.Contains(s, " ") && printable(s) &&
		!strings.ContainsAny(s, "\n") && !strings.Contains(s, "  ") &&
		!strings.HasPrefix(s, " ") && !strings.HasSuffix(s, " ")
}

// folded writes a text of one line on several, broken at spaces.
func folded(s string, indent int) string {
	var lines []string
	line, width := "", 0
	for word := range strings.SplitSeq(s, " ") {
		n := utf8.RuneCountInString(word)
		if line != "" && width+1+n > Width-indent {
			lines = append(lines, line)
			line, width = "", 0
		}
		if line != "" {
			line += " "
			width++
		}
		line += word
		width += n
	}
	return block(">-", append(lines, line), indent)
}

func block(head string, lines []string, indent int) string {
	pad := strings.Repeat(" ", indent)
	var b strings.Builder
	b.WriteString(head)
	for _, line := range lines {
		b.WriteByte('\n')
		if line != "" {
			b.WriteString(pad)
			b.WriteString(line)
		}
	}
	return b.String()
}
