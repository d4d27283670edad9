package secret

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// forms lists the texts that give a secret away, without line breaks and none
// shorter than [Shortest]. Of a secret with several lines each line is one:
// what shows it may number or indent them.
func forms(secret string) []string {
	var list []string
	lines := strings.FieldsFunc(secret, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range lines {
		if len(lines) > 1 {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "-----") || isPlain(line) {
				continue // as every PEM file has it
			}
		}
		if len(line) < Shortest {
			continue
		}
		list = append(list, line)
		digits := hex.EncodeToString([]byte(line))
		list = append(list, digits, strings.ToUpper(digits))
		for before := range 5 {
			list = append(list, insideBase32(line, before))
		}
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				list = append(list, inside(e, line, before))
			}
		}
		if strings.Contains(line, " ") {
			list = append(list, strings.ReplaceAll(line, " ", "+")) // in a form that was sent
		}
	}
	return list
}

// inside is what base64 makes of a text that begins after so many bytes, beyond
// a multiple of three, of another: only the characters that depend on it alone.
func inside(e *base64.Encoding, text string, before int) string {
	encoded := e.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	return encoded[(before*8+5)/6 : (before+len(text))*8/6]
}

// insideBase32 is inside for base32, beyond a multiple of five bytes.
func insideBase32(text string, before int) string {
	encoded := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	return encoded[(before*8+4)/5 : (before+len(text))*8/5]
}
