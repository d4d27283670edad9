package react

import "strings"

// withoutTimes drops lengths of time ("1.2 s", "35ms"), which differ from one run
// of a command to the next. It looks at every result, so it is no regular
// expression: that takes ten times as long.
func withoutTimes(text string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(text); i++ {
		if !isDigit(text[i]) || i > 0 && isWord(text[i-1]) {
			continue
		}
		if n := spanLen(text[i:]); n > 0 {
			b.WriteString(text[kept:i])
			i += n - 1
			kept = i + 1
		}
	}
	if kept == 0 {
		return text
	}
	return b.String() + text[kept:]
}

// spanLen is the length of the span of time that a text begins with, 0 if it
// does not.
func spanLen(text string) int {
	i := digits(text)
	if i < len(text) && text[i] == '.' {
		if n := digits(text[i+1:]); n > 0 {
			i += 1 + n
		}
	}
	if i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	for _, unit := range []string{"ns", "µs", "ms", "s", "m", "h"} {
		rest, ok := strings.CutPrefix(text[i:], unit)
		if ok && (rest == "" || !isWord(rest[0])) {
			return i + len(unit)
		}
	}
	return 0
}

func digits(text string) int {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
