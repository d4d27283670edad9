package plaintext

import (
	"os"
	"strings"
)

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
