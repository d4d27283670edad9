package secret

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// view is a reading of a text: its escapes are resolved.
type view struct {
	text  string
	read  int    // how much of the text it is: an escape that is cut off is left out
	marks []mark // where its places and those of the text drift apart, in order
}

// mark says which place of the text a place of the view is.
type mark struct{ view, text int }

// origin is the place of the text that a place of the view is.
func (v view) origin(at int) int {
	i := sort.Search(len(v.marks), func(i int) bool { return v.marks[i].view > at })
	if i == 0 {
		return at
	}
	return v.marks[i-1].text + at - v.marks[i-1].view
}

// reading is a way to read a text.
type reading struct {
	signs  string // the bytes that may begin an escape
	escape func(text string, at int) (means string, size int)
}

// readings are as a piece of JSON or of a program, of a URL and of HTML, and as
// hexadecimal digits with something between them.
func readings() [4]reading {
	return [4]reading{
		{`\`, func(s string, at int) (string, int) { return codeEscape(s[at:]) }},
		{"%", func(s string, at int) (string, int) { return urlEscape(s[at:]) }},
		{"&", func(s string, at int) (string, int) { return htmlEscape(s[at:]) }},
		{separators, betweenDigits},
	}
}

// view reads a text; false: it has no escapes. Marks are kept only if they are
// wanted, which is rarely, and they can be many.
func (r reading) view(text string, marked bool) (v view, ok bool) {
	at := strings.IndexAny(text, r.signs)
	if at < 0 || r.signs == separators && !marked && !hasDigits(text) {
		return v, false
	}
	b := make([]byte, 0, len(text))
	b = append(b, text[:at]...)
	for {
		means, size := r.escape(text, at)
		if size > len(text)-at {
			break
		}
		b = append(b, means...)
		at += size
		if marked && len(means) != size {
			v.marks = append(v.marks, mark{view: len(b), text: at})
		}
		next := strings.IndexAny(text[at:], r.signs)
		if next < 0 {
			b = append(b, text[at:]...)
			at = len(text)
			break
		}
		b = append(b, text[at:at+next]...)
		at += next
	}
	v.text, v.read = string(b), at
	return v, true
}

// codeEscape returns what an escape of JSON, C, Python or a shell means and its
// length, which is more than there is if it is cut off. What is none means itself.
func codeEscape(s string) (string, int) {
	if len(s) < 2 {
		return "", 2
	}
	switch c := s[1]; c {
	case '"', '\\', '/', '\'':
		return s[1:2], 2
	case 'n', 'r':
		return "\n", 2
	case 't':
		return "\t", 2
	case 'x':
		return number(s, 2, 4, 16)
	case 'u':
		if len(s) > 2 && s[2] == '{' {
			return braced(s)
		}
		return number(s, 2, 6, 16)
	case 'U':
		return number(s, 2, 10, 16)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		digits := 1
		for digits < 4 && 1+digits < len(s) && s[1+digits] >= '0' && s[1+digits] <= '7' {
			digits++
		}
		if digits == 4 && c != '0' { // \1634 is a letter and a digit, \0163 the letter
			digits = 3
		}
		if 1+digits == len(s) && digits < 4 && (c == '0' || digits < 3) {
			return "", len(s) + 1
		}
		return number(s, 1, 1+digits, 8)
	}
	return s[:1], 1
}

// braced is the character of JavaScript's and Rust's \u{73}.
func braced(s string) (string, int) {
	const longest = len(`\u{10FFFF}`)
	end := strings.IndexByte(s[:min(len(s), longest)], '}')
	switch {
	case end < 0 && len(s) < longest:
		return "", len(s) + 1
	case end < 0:
		return s[:1], 1
	}
	return entity(s, s[3:end], 16, end+1)
}

// number is the character whose number stands at s[from:to].
func number(s string, from, to, base int) (string, int) {
	if len(s) < to {
		return "", to
	}
	n, err := strconv.ParseUint(s[from:to], base, 31)
	switch {
	case err != nil:
		return s[:1], 1
	case n < 0x100 && (base == 8 || to-from == 2):
		return string([]byte{byte(n)}), to
	}
	return string(utf8.AppendRune(nil, rune(n))), to
}

// htmlEscape is codeEscape for the entities of HTML and XML.
func htmlEscape(s string) (string, int) {
	const longest = 10 // &#x10FFFF;
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 0 {
		if len(s) < longest && strings.Trim(s[1:], "#"+alphanumeric) == "" {
			return "", len(s) + 1
		}
		return s[:1], 1
	}
	switch name := s[1:end]; {
	case strings.HasPrefix(name, "#x"), strings.HasPrefix(name, "#X"):
		return entity(s, name[2:], 16, end+1)
	case strings.HasPrefix(name, "#"):
		return entity(s, name[1:], 10, end+1)
	default:
		for i, known := range [...]string{"amp", "lt", "gt", "quot", "apos", "nbsp"} {
			if name == known {
				return "&<>\"' "[i : i+1], end + 1
			}
		}
	}
	return s[:1], 1
}

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func entity(s, digits string, base, size int) (string, int) {
	n, err := strconv.ParseUint(digits, base, 31)
	if err != nil {
		return s[:1], 1
	}
	return string(utf8.AppendRune(nil, rune(n))), size
}

// separators may stand between hexadecimal digits: 73:6b, 73 6b, 0x73, 0x6b.
const separators = ":,- \t"

// betweenDigits leaves out what stands between two digits, at most a few characters of it.
func betweenDigits(text string, at int) (string, int) {
	const most = 6
	if at == 0 || !isDigit(text[at-1]) {
		return text[at : at+1], 1
	}
	end := at
	for end < len(text) && end-at < most && strings.IndexByte(separators+"\r\n", text[end]) >= 0 {
		end++
	}
	if rest := text[end:]; rest == "0" || strings.HasPrefix(rest, "0x") {
		end += min(2, len(rest))
	}
	if end < len(text) && !isDigit(text[end]) {
		return text[at : at+1], 1
	}
	return "", end - at
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// hasDigits reports quickly, for nearly all texts, that they have no secret in
// separated digits: there are never enough of them, with nothing else between.
func hasDigits(text string) bool {
	digits := 0
	for i := range len(text) {
		switch c := text[i]; c {
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f', 'A', 'B', 'C', 'D', 'E', 'F':
			if digits++; digits == 2*Shortest {
				return true
			}
		case ' ', ':', ',', '-', '\t', '\n', '\r', 'x':
		default:
			digits = 0
		}
	}
	return false
}

func urlEscape(s string) (string, int) {
	if len(s) < 3 {
		return "", 3
	}
	if c, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
		return string([]byte{byte(c)}), 3
	}
	return s[:1], 1
}
