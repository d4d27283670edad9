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
	sign   byte // begins an escape
	escape func(string) (means string, size int)
}

// readings are as a piece of JSON, and as one of a URL.
func readings() [2]reading { return [2]reading{{'\\', jsonEscape}, {'%', urlEscape}} }

// view reads a text; false: it has no escapes. Marks are kept only if they are
// wanted, which is rarely, and they can be many.
func (r reading) view(text string, marked bool) (v view, ok bool) {
	at := strings.IndexByte(text, r.sign)
	if at < 0 {
		return v, false
	}
	b := make([]byte, 0, len(text))
	b = append(b, text[:at]...)
	for {
		means, size := r.escape(text[at:])
		if size > len(text)-at {
			break
		}
		b = append(b, means...)
		at += size
		if marked && len(means) != size {
			v.marks = append(v.marks, mark{view: len(b), text: at})
		}
		next := strings.IndexByte(text[at:], r.sign)
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

// jsonEscape returns what an escape means and its length, which is more than
// there is if it is cut off. What is none means itself.
func jsonEscape(s string) (string, int) {
	if len(s) < 2 {
		return "", 2
	}
	switch s[1] {
	case '"', '\\', '/':
		return s[1:2], 2
	case 'n', 'r':
		return "\n", 2
	case 't':
		return "\t", 2
	case 'u':
		if len(s) < 6 {
			return "", 6
		}
		if r, err := strconv.ParseUint(s[2:6], 16, 16); err == nil {
			return string(utf8.AppendRune(nil, rune(r))), 6
		}
	}
	return s[:1], 1
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
