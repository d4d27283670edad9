package prompt

import (
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/util/plaintext"
)

// trim cleans a text and takes away blank lines around it. Spaces before the
// first word of its first line stay: they may be code.
func trim(s string) string {
	s = strings.TrimRight(plaintext.Replace(s), " \t\n")
	for {
		line, rest, found := strings.Cut(s, "\n")
		if !found || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// oneLine makes a text fit into one line of a list.
func oneLine(s string) string { return strings.Join(strings.Fields(plaintext.Replace(s)), " ") }

// name is the name of a role or an agent as it stands in a line: a word, which says
// nothing. Steps of others, as in a bundle, may have any text in its place.
func name(s string) string {
	const longest = 100 // characters
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+@", r) {
			return r
		}
		return '_'
	}, strings.TrimSpace(s))
	runes := []rune(s)
	return string(runes[:min(len(runes), longest)])
}
