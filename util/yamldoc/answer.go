package yamldoc

import "strings"

// ParseAnswer is [Parse] for a value that a model or a person writes by hand: a '#' that text
// follows at once is text, as in "note: Fixes #42" and "colour: #fff", where YAML has a comment.
// Where such a '#' may be either, it is an error. "# " begins a comment.
func ParseAnswer(src []byte, b Bounds) (*Doc, error) { return parse(src, b, true) }

// hideSigns puts a character that the text does not have in the place of each '#' that is text,
// so that the library sees no comment there. The sign is "" if the text has all such characters.
func hideSigns(text string) (hidden, sign string) {
	const first, last = '\ue000', '\uf8ff' // for private use
	for r := first; r <= last; r++ {
		if !strings.ContainsRune(text, r) {
			sign = string(r)
			break
		}
	}
	if sign == "" || !strings.Contains(text, "#") {
		return text, sign
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		before := byte('\n') // the last character but white space
		for i := range len(line) {
			if isSign(line, i, before) {
				b.WriteString(sign)
			} else {
				b.WriteByte(line[i])
			}
			if line[i] != ' ' && line[i] != '\t' {
				before = line[i]
			}
		}
	}
	return b.String(), sign
}

// isSign reports whether a '#' that YAML takes for the beginning of a comment is text. Behind a
// closing quote or bracket it is not: nothing but a comment can follow there.
func isSign(line string, i int, before byte) bool {
	return line[i] == '#' && i > 0 && strings.IndexByte(" \t[{,", line[i-1]) >= 0 &&
		i+1 < len(line) && strings.IndexByte(" \t\n", line[i+1]) < 0 &&
		strings.IndexByte("\n\"']}", before) < 0
}

// maybeText reports whether the comment that begins here may be meant as text: a '#' that text
// follows at once, where the value before it may continue or is missing.
func (l *lexer) maybeText() bool {
	if l.sign == "" || len(l.out) == 0 || strings.IndexByte(" \t\n", l.text[l.at+1]) >= 0 {
		return false
	}
	last := l.out[len(l.out)-1]
	return last.kind != tokQuoted && last.kind != tokBlock && !last.closes()
}
