package diagram

import (
	"strings"
	"unicode"
)

// columns is how many columns of a terminal a text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		return 0
	case isWide(r):
		return 2
	}
	return 1
}

// isWide reports whether a character is as wide as two: Chinese, Japanese,
// Korean, their punctuation and full-width forms, and emoji.
func isWide(r rune) bool {
	return r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff01 && r <= 0xff60 ||
		r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3ffff
}

// Cut shortens a text to a number of columns of a terminal, in which some
// characters take two; 0 is no limit.
func Cut(s string, width int) string { return cut(s, width) }

// cut shortens a text to a number of columns, 0 being no limit.
func cut(s string, width int) string {
	if width <= 0 || columns(s) <= width {
		return s
	}
	var b strings.Builder
	n := 1 // of the ellipsis
	for _, r := range s {
		if n += runeColumns(r); n > width {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// wrap breaks a text into at most most lines of at most width columns, at
// spaces where it can.
func wrap(s string, width, most int) []string {
	var lines []string
	for s != "" && len(lines) < most {
		if len(lines) == most-1 || columns(s) <= width {
			return append(lines, cut(s, width))
		}
		at, n, space := 0, 0, 0
		for i, r := range s {
			if r == ' ' {
				space = i
			}
			if n += runeColumns(r); n > width {
				at = i
				break
			}
		}
		if space > 0 && s[at] != ' ' {
			at = space
		}
		lines = append(lines, strings.TrimSpace(s[:at]))
		s = strings.TrimSpace(s[at:])
	}
	return lines
}
