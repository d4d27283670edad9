package yamldoc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// clean checks the bytes of a text and returns it without a byte order mark,
// with LF line ends, and with one at its end, which is what the library reads
// best.
func clean(src []byte, b Bounds) (string, error) {
	if len(src) > b.Bytes {
		return "", &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("the text has %d bytes, the limit is %d", len(src), b.Bytes)}
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	pos := Pos{1, 1}
	for i, r := range text {
		if msg := forbidden(text[i:], r); msg != "" {
			return "", &Error{Pos: pos, Message: msg}
		}
		pos = pos.after(r)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// forbidden says why a character cannot stand in a YAML text.
func forbidden(rest string, r rune) string {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(rest, "\ufffd"):
		return fmt.Sprintf("the byte 0x%02X is not UTF-8 text", rest[0])
	case r == '\t' || r == '\n':
		return ""
	case r < ' ' || r == 0x7f:
		return fmt.Sprintf("the control character U+%04X is not allowed; in double quotes it can be written as \\x%02X", r, r)
	case r == '\ufeff':
		return "a byte order mark is only allowed at the start of the text"
	}
	return ""
}

// after is the place of what follows the character r at p.
func (p Pos) after(r rune) Pos {
	if r == '\n' {
		return Pos{p.Line + 1, 1}
	}
	return Pos{p.Line, p.Column + 1}
}
