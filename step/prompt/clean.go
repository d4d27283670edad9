package prompt

import (
	"strings"

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
