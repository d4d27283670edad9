package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// forms lists the texts that give a secret away, without line breaks and none shorter than [Shortest]. Of
// a secret with several lines each line is one: what shows it may number or indent them.
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
		for _, escapeHTML := range []bool{false, true} {
			text := inJSON(line, escapeHTML)
			list = append(list, text, strings.ReplaceAll(text, "/", `\/`))
		}
		for _, text := range []string{url.QueryEscape(line), url.PathEscape(line)} {
			list = append(list, text, lowerEscapes(text))
		}
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				list = append(list, inside(e, line, before))
			}
		}
	}
	return list
}

// inJSON is a text as a string of JSON, without its quotes.
func inJSON(text string, escapeHTML bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	if e.Encode(text) != nil {
		return text
	}
	return strings.TrimSuffix(strings.Trim(b.String(), "\n")[1:], `"`)
}

// lowerEscapes writes the digits of the escapes of a URL in lower case.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// inside is what base64 makes of a text that begins after so many bytes, beyond a multiple of three, of
// another: only the characters that depend on it alone.
func inside(e *base64.Encoding, text string, before int) string {
	encoded := e.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	return encoded[(before*8+5)/6 : (before+len(text))*8/6]
}
