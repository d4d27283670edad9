package yamltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
