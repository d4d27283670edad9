package jsonschema

import (
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// quickFormat knows the formats that can be told without what the library needs
// for them; of a date with a time and of a URI it knows the plain forms only.
func quickFormat(arg any) quick {
	var knows func(string) answer
	switch arg {
	case "ocas_ref", "cas_ref":
		knows = func(s string) answer { return sure(protocol.Hash(s).Valid()) }
	case "date":
		knows = func(s string) answer { return sure(isDate(s)) }
	case "time":
		knows = func(s string) answer { return maybe(isPlainTime(s)) }
	case "date-time":
		knows = func(s string) answer {
			return maybe(len(s) > 11 && s[10] == 'T' && isDate(s[:10]) && isPlainTime(s[11:]))
		}
	case "uri":
		knows = func(s string) answer { return maybe(isPlainURI(s)) }
	case "uuid":
		knows = func(s string) answer { return sure(isUUID(s)) }
	default:
		return nil
	}
	return func(v any) answer {
		text, ok := v.(string)
		if !ok {
			return fits
		}
		return knows(text)
	}
}

// maybe is sure only of what is so.
func maybe(ok bool) answer {
	if ok {
		return fits
	}
	return unsure
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isPlainTime knows hh:mm:ss, without a leap second, then a fraction perhaps,
// then Z or an offset.
func isPlainTime(s string) bool {
	if len(s) < len("12:00:00Z") || s[2] != ':' || s[5] != ':' || !upTo(s[:2], 23) || !upTo(s[3:5], 59) || !upTo(s[6:8], 59) {
		return false
	}
	s = s[8:]
	if s[0] == '.' {
		rest := strings.TrimLeft(s[1:], "0123456789")
		if len(rest) == len(s)-1 {
			return false
		}
		s = rest
	}
	if s == "Z" {
		return true
	}
	return len(s) == len("+01:00") && (s[0] == '+' || s[0] == '-') && s[3] == ':' && upTo(s[1:3], 23) && upTo(s[4:], 59)
}

// upTo reports whether two characters are digits, and of at most that number.
func upTo(s string, most int) bool {
	return len(s) == 2 && isDigit(s[0]) && isDigit(s[1]) && int(s[0]-'0')*10+int(s[1]-'0') <= most
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isPlainURI knows http and https with the characters that need no second look:
// no port, no user, no escapes.
func isPlainURI(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return false
		}
	}
	for i := range len(rest) {
		if c := rest[i]; !isLetter(c) && !isDigit(c) && !strings.ContainsRune("-._~/?#=&+,", rune(c)) {
			return false
		}
	}
	return rest != ""
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !isDigit(c) && !('a' <= c && c <= 'f') && !('A' <= c && c <= 'F') {
				return false
			}
		}
	}
	return true
}
