// Package plaintext detects characters that control a terminal, and makes untrusted text safe to display.
//
// Harmful characters move the cursor, change colors, titles or the clipboard, or make a text look different
// from its bytes: control characters (C0 except newline and tab, DEL, C1), marks that change the writing
// direction, Unicode line separators, invisible tags that spell ASCII, and characters that are invisible or
// look like a space. A zero-width joiner isn't harmful: several scripts and many emoji need it, and it
// affects only adjacent characters.
//
// Use [Escape] for a terminal, where the original stays readable; [Replace] for a model; [Indent] for a
// message with several lines; [Line] for a table cell; [Strip] for the terminal output of another program.
package plaintext

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// Harmful reports whether a character controls a terminal or hides.
func Harmful(r rune) bool {
	switch {
	case r < 0x7F:
		return r < ' ' && r != '\n' && r != '\t'
	case r < 0x061C:
		return r <= 0x9F || r == '\u00ad'
	}
	return unseen(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r >= 0xE0000 &&
		r <= 0xE007F
}

// unseen reports whether a character is invisible and not needed by any script.
func unseen(r rune) bool {
	switch r {
	case '\u00ad', '\u180e', '\u200b', '\u2060', '\u2061', '\u2062', '\u2063', '\u2064', '\u2800', '\u3164', '\ufeff',
		'\uffa0', '\ufff9', '\ufffa', '\ufffb':
		return true
	}
	return false
}

// control reports whether a character is a control character other than newline and tab.
func control(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }

// Escape replaces harmful characters with JSON escapes, so that the values of JSON and YAML texts don't
// change: ESC becomes \u001b. Line breaks become newlines, and invalid UTF-8 becomes the replacement
// character. A clean text is returned unchanged.
func Escape(s string) string {
	if isClean(s) {
		return s
	}
	out, rest := Append(nil, []byte(s))
	return string(AppendEnd(out, rest))
}

func isClean(s string) bool {
	for i, r := range s {
		if Harmful(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// Append appends the escaped form of a piece of a stream. It returns the end of the piece that depends on the
// next one: the beginning of a character, or a carriage return. At the end of the stream pass it to
// [AppendEnd].
func Append(to, piece []byte) (out, rest []byte) {
	if isClean(string(piece)) {
		return append(to, piece...), nil
	}
	for len(piece) > 0 {
		if piece[0] == '\r' {
			if len(piece) == 1 {
				return to, piece
			}
			if piece[1] != '\n' {
				to = append(to, '\n')
			}
			piece = piece[1:]
			continue
		}
		if !utf8.FullRune(piece) {
			return to, piece
		}
		r, n := utf8.DecodeRune(piece)
		to = appendRune(to, r)
		piece = piece[n:]
	}
	return to, nil
}

// AppendEnd appends the rest of the last piece of a stream.
func AppendEnd(to, rest []byte) []byte {
	switch {
	case len(rest) == 0:
		return to
	case rest[0] == '\r':
		return append(to, '\n')
	}
	return utf8.AppendRune(to, utf8.RuneError)
}

func appendRune(to []byte, r rune) []byte {
	if !Harmful(r) {
		return utf8.AppendRune(to, r)
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		to = fmt.Appendf(to, `\u%04x`, unit)
	}
	return to
}

// Replace makes a text safe to pass on: valid UTF-8, newlines as the only line breaks, and a replacement
// character for every control character. A single escape byte in a tool's output is known to break JSON
// clients. Direction marks stay: they belong to the text, and a model sees them.
func Replace(s string) string {
	i := 0
	for i < len(s) && (' ' <= s[i] && s[i] < 0x7F || s[i] == '\n' || s[i] == '\t') {
		i++
	}
	if utf8.ValidString(s[i:]) && strings.IndexFunc(s[i:], control) < 0 {
		return s // the usual case: don't copy a long history
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return utf8.RuneError
		}
		return r
	}, lineFeeds(s))
}

// Indent indents every line of a text except the first, so that none can pass for a line of our own, such as
// a hint or a table row.
func Indent(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines[1:] {
		if line != "" && line[0] != '\t' && !strings.HasPrefix(line, "  ") {
			lines[i+1] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// Line makes a text fit on one line of a terminal: harmful characters, line breaks and tabs become spaces. It
// is for names, titles and reasons, which are distinguished by their look: invisible characters become
// replacement characters, except joiners between letters that need them.
func Line(s string) string {
	var last rune
	return strings.Map(func(r rune) rune {
		before := last
		last = r
		switch {
		case unseen(r):
			return utf8.RuneError
		case r == '\n' || r == '\t' || Harmful(r):
			return ' '
		case r == '\u200c' || r == '\u200d' || r >= 0xFE00 && r <= 0xFE0F:
			if before < 0x0600 && r != '\uFE0F' { // Latin, Greek, Cyrillic, Hebrew
				return utf8.RuneError
			}
		case invisible(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// invisible reports whether a character is invisible and isn't an ordinary space.
func invisible(r rune) bool {
	if r < 0xAD {
		return false
	}
	switch r {
	case '\u00ad', '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0': // a soft hyphen, fillers
		return true
	}
	return unicode.Is(unicode.Cf, r) || r >= 0x180B && r <= 0x180F || r >= 0xE0100 && r <= 0xE01EF
}

// sequence matches a terminal control sequence, such as a color. It is compiled on demand, because few
// programs encounter one.
var sequence = lazyregexp.New(`\x1b(\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])`)

// Strip removes terminal control sequences and other harmful characters.
func Strip(s string) string {
	if isClean(s) {
		return s
	}
	s = lineFeeds(s)
	if strings.ContainsRune(s, '\x1b') {
		s = sequence().ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		if Harmful(r) {
			return -1
		}
		return r
	}, s)
}

// lineFeeds converts a text to valid UTF-8 with newlines as the only line breaks.
func lineFeeds(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.ReplaceAll(s, "\r", "\n")
}

// Ends returns the beginning and the end of a text, at most head and tail bytes in whole characters, and the
// number of bytes omitted between them. If left is 0, begin is the whole text.
func Ends(s string, head, tail int) (begin, end string, left int) {
	if len(s) <= head+tail {
		return s, "", 0
	}
	begin, end = WholeRunes(s[:head], s[len(s)-tail:])
	return begin, end, len(s) - len(begin) - len(end)
}

// WholeRunes removes incomplete characters at the end of head and at the beginning of tail.
func WholeRunes(head, tail string) (string, string) {
	for len(head) > 0 {
		if r, n := utf8.DecodeLastRuneInString(head); r != utf8.RuneError || n > 1 {
			break
		}
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return head, tail
}

// Literal quotes each word of a command so that a person sees exactly what would run: characters that [Word]
// replaces are shown in the form $'\n'.
func Literal(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = literal(word)
	}
	return strings.Join(quoted, " ")
}

// manyBlanks is the number of spaces that push the following text out of sight.
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

// hides reports whether a character isn't displayed as itself.
func hides(r rune) bool {
	return r < ' ' || r != ' ' && unicode.IsSpace(r) || Harmful(r) || invisible(r) || r >= 0xFE00 && r <= 0xFE0F
}

// Names formats a list of untrusted names, up to most. It quotes a name that could look like several names or
// like the end of the list.
func Names(names []string, most int) string {
	var list []string
	for _, name := range names[:min(len(names), most)] {
		if strings.ContainsAny(name, `,"`) || strings.TrimSpace(name) != name || Line(name) != name {
			name = strconv.Quote(name)
		}
		list = append(list, name)
	}
	if more := len(names) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// Short shortens a text to this number of characters and appends "…" if it was longer.
func Short(text string, most int) string {
	n := 0
	for at := range text {
		if n == most {
			return text[:at] + "…"
		}
		n++
	}
	return text
}

// Word quotes a word for a POSIX shell. It is for paths, names and arguments from untrusted sources in hints
// that people paste. A plain word is returned unchanged; ~/ at the start of a path still means the home
// directory.
func Word(s string) string {
	if rest, ok := strings.CutPrefix(s, "~/"); ok && rest != "" {
		return "~/" + Word(rest)
	}
	if s != "" && s[0] != '~' && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(Line(s), "'", `'\''`) + "'"
}

// special reports whether a character has a special meaning to a shell or is invisible. Letters of any
// alphabet aren't special.
func special(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_@%+:,./-=~", r):
		return false
	case r == '\\':
		return os.PathSeparator != '\\'
	case r < 0x80:
		return true
	}
	return r == '\u00a0' || Harmful(r) || invisible(r)
}
