package prompt

import (
	"strings"
	"unicode"
)

// fold makes of a line what a reader takes it for: lower case, one kind of blank,
// no character that cannot be seen, and Latin letters for those that look like
// them. It knows what is common, not all of Unicode.
func fold(line string) string {
	if isASCII(line) {
		return strings.Join(strings.Fields(strings.ToLower(line)), " ")
	}
	var b strings.Builder
	for _, r := range line {
		switch {
		case r >= 0x3400 && r <= 0x9FFF, r >= 0xAC00 && r <= 0xD7A3: // looks like no letter of ours
			b.WriteRune(r)
		case unicode.IsSpace(r), r == '\u2800', r == '\u3164': // the last two look empty
			b.WriteByte(' ')
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Mn, r), unicode.IsControl(r), r == unicode.ReplacementChar:
		default:
			b.WriteRune(unicode.ToLower(latin(unicode.ToLower(r))))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 || s[i] < ' ' && s[i] != '\t' {
			return false
		}
	}
	return true
}

// latin is the ASCII character that a character looks like, else itself.
func latin(r rune) rune {
	switch {
	case r < 0x80:
		return r
	case r >= 0xFF01 && r <= 0xFF5E: // full width
		return r - 0xFEE0
	case r >= 0x1D400 && r <= 0x1D6A3: // mathematical alphabets, 52 letters each
		if n := (r - 0x1D400) % 52; n < 26 {
			return 'A' + n
		} else {
			return 'a' + n - 26
		}
	case r >= 0x24D0 && r <= 0x24E9: // in circles
		return 'a' + r - 0x24D0
	}
	const (
		alike = "аеорсухіјѕԁһкмтвнгԛԝοαεικνρτυχґıɡɑℓ♯﹟＃⋕–—−‒∶꞉：ꓽ"
		ascii = "aeopcyxijsdhkmtbhrqwoaeikvptuxrigal####----::::"
	)
	if at := strings.IndexRune(alike, r); at >= 0 {
		return rune(ascii[len([]rune(alike[:at]))])
	}
	return r
}
