// Package plaintext tells text from what a terminal obeys, and makes of a
// stranger's text one that is only read.
//
// Harmful is what moves the cursor, changes colours, titles or the clipboard, or
// lets a reader see another text than the bytes say: control characters (C0 but
// line feed and tab, DEL, C1), marks that turn the direction of writing, the line
// separators of Unicode, the invisible tags that spell ASCII, and what is seen as
// nothing or as a blank that it is not. A zero-width joiner is none of these: several scripts and
// many emoji need it, and it changes
// nothing but the letters next to it.
//
// [Escape] is for a terminal and keeps what was there readable; [Replace] is for a
// model; [Indent] is for a message of
// several lines; [Line] is for a cell of a table; [Strip] is for what a program said to a
// terminal that it took us for.
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

// Harmful reports whether a terminal obeys a character, or hides with it.
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

// unseen reports whether nothing is seen of a character that no script needs between
// its letters.
func unseen(r rune) bool {
	switch r {
	case '\u00ad', '\u180e', '\u200b', '\u2060', '\u2061', '\u2062', '\u2063', '\u2064', '\u2800', '\u3164', '\ufeff',
		'\uffa0', '\ufff9', '\ufffa', '\ufffb':
		return true
	}
	return false
}

// control reports whether a character controls a device.
func control(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }

// Escape shows what is harmful as JSON would write it, so that JSON and YAML stay
// the same value: ESC becomes \u001b. Line breaks become line feeds, and bytes that
// are no UTF-8 the replacement character. A text without any of that is returned as
// it is.
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

// Append appends the escaped form of a piece of a stream, and returns what cannot
// be judged before the next piece is there: the beginning of a character, or a
// carriage return. At the end of the stream that goes to [AppendEnd].
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

// AppendEnd appends what the last piece of a stream has left.
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

// Replace makes a text safe to hand on: valid UTF-8, line feeds only, and a
// replacement character for every control character. A lone escape byte in a
// tool's output has broken JSON clients before. Marks of direction stay: they
// belong to the text, and a model sees them.
func Replace(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, control) < 0 {
		return s // as nearly always: no copy of a long history
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return utf8.RuneError
		}
		return r
	}, lineFeeds(s))
}

// Indent moves every line of a text but the first to the right, so that none can be
// taken for one that we have begun: hint:, uwf: or a row of a table.
func Indent(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines[1:] {
		if line != "" && line[0] != '\t' && !strings.HasPrefix(line, "  ") {
			lines[i+1] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// Line makes a text fit into one line of a terminal: a blank for all that is
// harmful, and for line breaks and tabs. It is for names, titles and reasons, which
// are told apart by their look: what cannot be seen is shown as a replacement
// character, but for joiners between letters that need them.
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

// invisible reports whether nothing is seen of a character, although it is no blank
// of prose.
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

// sequence matches a terminal's control sequence, such as a colour. It is compiled
// when one turns up, which is rare, and not at every start of a program.
var sequence = lazyregexp.New(`\x1b(\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])`)

// Strip takes out what a program wrote for a terminal: whole control sequences, and
// what else is harmful.
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

// lineFeeds makes a text valid UTF-8 in which only line feeds break lines.
func lineFeeds(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.ReplaceAll(s, "\r", "\n")
}

// Ends returns what is left of a text when its middle is cut out: at most head and tail bytes, in
// whole characters, and how many bytes lie between them; 0: begin is the whole text.
func Ends(s string, head, tail int) (begin, end string, left int) {
	if len(s) <= head+tail {
		return s, "", 0
	}
	begin, end = WholeRunes(s[:head], s[len(s)-tail:])
	return begin, end, len(s) - len(begin) - len(end)
}

// WholeRunes drops the halves of a character that a cut has left at the end of head and at the
// beginning of tail.
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

// Names is a list of at most so many names, each of which may be anything: one that could be
// taken for more, or for the end of the list, is quoted.
func Names(names []string, most int) string {
	var said []string
	for _, name := range names[:min(len(names), most)] {
		if strings.ContainsAny(name, `,"`) || strings.TrimSpace(name) != name || Line(name) != name {
			name = strconv.Quote(name)
		}
		said = append(said, name)
	}
	if more := len(names) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, ", ")
}

// Short is a text cut after so many characters, which "…" then says.
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

// Word is a word of a command as it must be typed into a POSIX shell: a path, a name
// or an argument that somebody else may have chosen, in a hint that people paste. A
// plain one stays as it is; ~/ before a path still stands for the home directory.
func Word(s string) string {
	if rest, ok := strings.CutPrefix(s, "~/"); ok && rest != "" {
		return "~/" + Word(rest)
	}
	if s != "" && s[0] != '~' && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(Line(s), "'", `'\''`) + "'"
}

// special reports whether a character is more than itself to a shell. Letters of any
// alphabet are not; what cannot be seen is.
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
