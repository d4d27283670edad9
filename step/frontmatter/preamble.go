package frontmatter

import (
	"errors"
	"strings"
)

// WithoutPreamble drops what a model says before its block, such as "Sure! Here it
// is:". The text stays as it is unless what begins with its first line "---" really
// is a block.
func WithoutPreamble(text string) string {
	if _, err := Parse(text); !errors.Is(err, ErrNone) {
		return text
	}
	at := 0
	for line := range strings.Lines(text) {
		if strings.TrimRight(line, " \t\r\n") == marker {
			answer, err := Parse(text[at:])
			if err == nil && len(answer.Fields) > 0 {
				return text[at:]
			}
			return text
		}
		at += len(line)
	}
	return text
}
