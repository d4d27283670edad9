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
	if err := p.value(0, false); err != nil {
		return nil, err
	}
	return p.out.Bytes(), nil
}

type yamlPrinter struct {
	dec *json.Decoder
	out bytes.Buffer
}

// value prints the next value. inline means that the cursor stands behind a key
// or a dash: a scalar goes on the same line, a collection on the next.
func (p *yamlPrinter) value(indent int, inline bool) error {
	tok, err := p.dec.Token()
	if err != nil {
		return err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return p.mapping(indent, inline)
		}
		return p.sequence(indent, inline)
	case string:
		p.scalar(yamlString(tok, indent), inline)
	case nil:
		p.scalar("null", inline)
	default:
		p.scalar(fmt.Sprint(tok), inline)
	}
	return nil
}

func (p *yamlPrinter) scalar(s string, inline bool) {
	if inline {
		p.out.WriteByte(' ')
	}
	p.out.WriteString(s)
	p.out.WriteByte('\n')
}

func (p *yamlPrinter) mapping(indent int, inline bool) error {
	if !p.dec.More() {
		p.scalar("{}", inline)
		_, err := p.dec.Token()
		return err
	}
	if inline {
		p.out.WriteByte('\n')
	}
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("key %v is not a string", key)
		}
		p.indent(indent)
		p.out.WriteString(yamlKey(name))
		p.out.WriteByte(':')
		if err := p.value(indent+2, true); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

func (p *yamlPrinter) sequence(indent int, inline bool) error {
	if !p.dec.More() {
		p.scalar("[]", inline)
		_, err := p.dec.Token()
		return err
	}
	if inline {
		p.out.WriteByte('\n')
	}
	for p.dec.More() {
		p.indent(indent)
		p.out.WriteByte('-')
		if err := p.value(indent+2, true); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

func (p *yamlPrinter) indent(n int) {
	for range n {
		p.out.WriteByte(' ')
	}
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
