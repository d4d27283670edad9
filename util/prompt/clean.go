package prompt

import (
	"strings"
	"unicode/utf8"
)

// clean makes a text safe to show a model and a terminal: valid UTF-8, line
// feeds only, and a replacement character for every control character. A lone
// escape byte in a tool's output has broken terminals and JSON clients before.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, isControl) < 0 {
		return s // as nearly always: no copy of a long history
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case isControl(r):
			return '\uFFFD'
		}
		return r
	}, s)
}

func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7F && r <= 0x9F
}

// trim cleans a text and takes away blank lines around it. Spaces before the
// first word of its first line stay: they may be code.
func trim(s string) string {
	s = strings.TrimRight(clean(s), " \t\n")
	for {
		line, rest, found := strings.Cut(s, "\n")
		if !found || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// oneLine makes a text fit into one line of a list.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
