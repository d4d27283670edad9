// Package yamltext writes YAML for people: in a given order, with short collections on one line and long
// texts as blocks. Its output parses to the same value (package yamldoc) for any strings; the YAML library's
// own writer loses tabs and carriage returns.
//
// A string is written plain only if that is obviously safe, as a block only if that preserves every
// character, and otherwise in double quotes.
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

// Width is the maximum line width, for lines that can be broken.
const Width = 100

// Map is a mapping in output order.
type Map []Entry

// Entry is a key with its value.
type Entry struct {
	Key   string
	Value any
	Blank bool // add an empty line before it, in a multi-line mapping
}

// List is a sequence.
type List []any

// Marshal formats a value: nil, bool, a string, a number (int, int64, float64, json.Number), [Map], [List],
// or []any and map[string]any, whose keys are sorted. Other types are errors.
func Marshal(v any) ([]byte, error) { return marshal(v, Width) }

// MarshalWide is Marshal without a width limit for collections on one line, because only those can be added
// to a collection on one line.
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

// cursor is the position of a value: a scalar follows its key or dash; a collection starts on the next line,
// or on the same line after a dash.
type cursor int

const (
	atLineStart cursor = iota
	behindKey
	behindDash
)

// value writes a value. Its own lines, if any, are indented by indent.
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

// column returns the number of characters in the current line.
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

// begin starts the i-th line of a collection.
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

// ordered converts Go's own collections to ordered ones.
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

// flow formats a collection on one line if it is simple enough: a mapping of scalars and lists of scalars, or
// a list of scalars.
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

// number formats a value that is neither a string nor a collection.
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

// scalar formats a scalar; the lines of a block are indented by indent.
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

// key quotes a key unless it is a plain word.
func key(s string) string {
	if isPlain(s) && !strings.Contains(s, ",") {
		return s
	}
	return quote(s)
}

// quote formats a JSON string without HTML escapes, but with escapes for all invisible characters, some of
// which YAML forbids.
func quote(s string) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // can't happen for a string
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

// isPlain is stricter than YAML: the first character is a letter, '/', '$' or '_', and the text contains no
// special characters and doesn't read as another type.
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

// isLiteral reports whether a literal block preserves a multi-line text: printable, no tab or carriage
// return, no trailing spaces, and a first line that shows the indentation.
func isLiteral(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasPrefix(s, "\n") || strings.HasPrefix(s, " ") {
		return false
	}
	return !strings.HasSuffix(s, " ") && !strings.Contains(s, " \n") && printable(s)
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// literal formats a literal block with the chomping that preserves trailing newlines.
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

// isFoldable reports whether a one-line text can be broken at its spaces.
func isFoldable(s string) bool {
	return strings.Contains(s, " ") && printable(s) &&
		!strings.ContainsAny(s, "\n") && !strings.Contains(s, "  ") &&
		!strings.HasPrefix(s, " ") && !strings.HasSuffix(s, " ")
}

// folded breaks a one-line text into several lines at spaces.
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
