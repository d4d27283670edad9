package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// yamlFromJSON writes JSON as block YAML in the same order. The YAML library is
// not used: its output does not always read back as the same value (tabs,
// carriage returns), and what is printed here is piped into other programs.
// Whatever is not plainly safe is written as a double-quoted JSON string, which
// is YAML too.
func yamlFromJSON(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	p := &yamlPrinter{dec: dec}
	if err := p.value(0, atLineStart); err != nil {
		return nil, err
	}
	return p.out.Bytes(), nil
}

type yamlPrinter struct {
	dec *json.Decoder
	out bytes.Buffer
}

// cursor is where a value begins: a scalar goes behind a key or a dash, a
// collection begins on the next line, but behind a dash on the same one.
type cursor int

const (
	atLineStart cursor = iota
	behindKey
	behindDash
)

// value prints the next value.
func (p *yamlPrinter) value(indent int, at cursor) error {
	tok, err := p.dec.Token()
	if err != nil {
		return err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return p.mapping(indent, at)
		}
		return p.sequence(indent, at)
	case string:
		p.scalar(yamlString(tok, indent), at)
	case nil:
		p.scalar("null", at)
	default:
		p.scalar(fmt.Sprint(tok), at)
	}
	return nil
}

func (p *yamlPrinter) scalar(s string, at cursor) {
	if at != atLineStart {
		p.out.WriteByte(' ')
	}
	p.out.WriteString(s)
	p.out.WriteByte('\n')
}

func (p *yamlPrinter) mapping(indent int, at cursor) error {
	if !p.dec.More() {
		p.scalar("{}", at)
		_, err := p.dec.Token()
		return err
	}
	for i := 0; p.dec.More(); i++ {
		key, err := p.dec.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("key %v is not a string", key)
		}
		p.begin(indent, at, i)
		p.out.WriteString(yamlKey(name))
		p.out.WriteByte(':')
		if err := p.value(indent+2, behindKey); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

func (p *yamlPrinter) sequence(indent int, at cursor) error {
	if !p.dec.More() {
		p.scalar("[]", at)
		_, err := p.dec.Token()
		return err
	}
	for i := 0; p.dec.More(); i++ {
		p.begin(indent, at, i)
		p.out.WriteByte('-')
		if err := p.value(indent+2, behindDash); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

// begin begins the i-th line of a collection.
func (p *yamlPrinter) begin(indent int, at cursor, i int) {
	switch {
	case i == 0 && at == behindDash:
		p.out.WriteByte(' ')
		return
	case i == 0 && at == behindKey:
		p.out.WriteByte('\n')
	}
	p.out.WriteString(strings.Repeat(" ", indent))
}

// yamlKey quotes a key that is not a plain word.
func yamlKey(s string) string {
	if isPlain(s) {
		return s
	}
	return quote(s)
}

// yamlString is a scalar: plain, a literal block for clean text of several
// lines, else quoted.
func yamlString(s string, indent int) string {
	switch {
	case isPlain(s):
		return s
	case isBlock(s):
		return block(s, indent)
	}
	return quote(s)
}

func quote(s string) string {
	data, err := marshal(s)
	if err != nil { // cannot happen for a string
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(string(data), "\n")
}

// isPlain is stricter than YAML: a letter, '/' or '$' first, no character that
// could mean something, and no word or number that reads as another type.
func isPlain(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return false
	}
	first := rune(s[0])
	if !(first < unicode.MaxASCII && unicode.IsLetter(first)) && first != '/' && first != '$' {
		return false
	}
	for _, r := range s {
		switch {
		case r == ' ' || r == '-' || r == '_' || r == '.' || r == '/' || r == '$' || r == '@' || r == '(' || r == ')' || r == '+' || r == '=' || r == ',' || r == ';':
		case unicode.IsLetter(r) || r >= '0' && r <= '9':
		default:
			return false
		}
	}
	return !strings.HasSuffix(s, " ") && !strings.HasPrefix(s, "---")
}

// isBlock reports whether a text of several lines survives as a literal block:
// printable, no tab or carriage return, no line that begins or ends with a
// space, and no empty first line.
func isBlock(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasPrefix(s, "\n") {
		return false
	}
	for _, r := range s {
		if r != '\n' && !unicode.IsPrint(r) {
			return false
		}
	}
	lines := strings.Split(s, "\n")
	if strings.HasPrefix(lines[0], " ") {
		return false
	}
	for _, l := range lines {
		if strings.HasSuffix(l, " ") {
			return false
		}
	}
	return true
}

// block writes a literal block with the chomping that keeps the line ends.
func block(s string, indent int) string {
	head := "|-"
	switch {
	case strings.HasSuffix(s, "\n\n"):
		head = "|+"
	case strings.HasSuffix(s, "\n"):
		head = "|"
	}
	if indent == 0 {
		indent = 2
	}
	pad := strings.Repeat(" ", indent)
	var b strings.Builder
	b.WriteString(head)
	for _, line := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
		b.WriteByte('\n')
		if line != "" {
			b.WriteString(pad)
			b.WriteString(line)
		}
	}
	return b.String()
}
