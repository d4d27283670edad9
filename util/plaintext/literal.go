package plaintext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Literal are the words of a command, quoted one by one, so that a person sees all that
// would run: what [Word] makes a blank is shown as what it is, in the form of $'\n'.
func Literal(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = literal(word)
	}
	return strings.Join(quoted, " ")
}

// manyBlanks push what follows them out of sight.
const manyBlanks = 8

func literal(s string) string {
	padded := strings.Contains(s, strings.Repeat(" ", manyBlanks))
	if !padded && utf8.ValidString(s) && !strings.ContainsFunc(s, hides) {
		return Word(s)
	}
	var b strings.Builder
	b.WriteString("$'")
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[at])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == ' ' && padded:
			b.WriteString(`\x20`)
		case !hides(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		at += n
	}
	return b.String() + "'"
}

// hides reports whether a character is not seen as itself.
func hides(r rune) bool {
	return r < ' ' || r != ' ' && unicode.IsSpace(r) || Harmful(r) || invisible(r) || r >= 0xFE00 && r <= 0xFE0F
}
