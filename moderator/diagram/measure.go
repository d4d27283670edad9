package diagram

import (
	"strings"
	"unicode"
)

// Columns is how many columns of a terminal a text takes.
func Columns(s string) int { return columns(s) }

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
	case r == '\uFE0F': // makes a picture of the sign before it
		return 1
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
		r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3ffff || unicode.Is(wideSigns, r)
}

// wideSigns are pictures among signs that are as wide as one.
var wideSigns = &unicode.RangeTable{R16: []unicode.Range16{
	{0x231a, 0x231b, 1}, {0x2329, 0x232a, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f3, 3}, {0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1},
	{0x2648, 0x2653, 1}, {0x267f, 0x2693, 20}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1}, {0x26c4, 0x26c5, 1},
	{0x26ce, 0x26d4, 6}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f3, 1}, {0x26f5, 0x26fa, 5}, {0x26fd, 0x2705, 8}, {0x270a, 0x270b, 1},
	{0x2728, 0x2728, 1}, {0x274c, 0x274e, 2}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2795, 0x2797, 1}, {0x27b0, 0x27bf, 15},
	{0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 5}, {0xa960, 0xa97c, 1}, {0xffe0, 0xffe6, 1},
}, R32: []unicode.Range32{{0x16fe0, 0x18cff, 1}, {0x1aff0, 0x1b2ff, 1}, {0x1f004, 0x1f0cf, 203}, {0x1f18e, 0x1f19a, 1}, {0x1f200, 0x1f265, 1}}}

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
