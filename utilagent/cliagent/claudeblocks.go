package cliagent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ClaudeBlocks are the texts in which a prompt reaches Claude Code, whichever way it
// is driven; plain tells whether it may go as one text.
//
// In a text claude takes "@" before a word for a mention of a file, and reads the
// file, wherever it is and whatever the permission is; it takes a text that begins
// with "/" for a command of its own. Prompts hold mail addresses, code and what
// other roles have said, and none of it is meant in that way. Of a message in
// several blocks claude looks at the last one only, so such a prompt goes in two, the
// second of which holds nothing that it could take for more than text. The model gets
// both as they are.
func ClaudeBlocks(prompt string) (parts []string, plain bool) {
	if !strings.ContainsRune(prompt, '@') && !strings.HasPrefix(strings.TrimSpace(prompt), "/") {
		return []string{prompt}, true
	}
	return apart(prompt), false
}

// apart cuts a prompt in two behind its last "@", at the end of a line if it can,
// else of a word, else anywhere. The second part begins with a letter or a digit. A
// prompt that cannot be cut so, such as "@?", is one part.
func apart(prompt string) []string {
	after := strings.LastIndexByte(prompt, '@') + 1
	if after == 0 {
		after = len(prompt) - len(strings.TrimLeftFunc(prompt, unicode.IsSpace)) + 1 // behind the "/"
	}
	for _, boundary := range []string{"\n", " ", ""} {
		for at := after; at < len(prompt); at++ {
			found := strings.Index(prompt[at:], boundary)
			if found < 0 {
				break
			}
			at += found
			cut := at + len(boundary)
			if first, _ := utf8.DecodeRuneInString(prompt[cut:]); unicode.IsLetter(first) || unicode.IsDigit(first) {
				return []string{prompt[:cut], prompt[cut:]}
			}
		}
	}
	return []string{prompt}
}
