package fileheads

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
)

// entry is one line of threads.yaml or registry.yaml.
type entry struct {
	key   string
	hash  protocol.Hash
	plain bool // neither needs quotes
}

func newEntry(key string, h protocol.Hash) entry {
	return entry{key: key, hash: h, plain: plainKey(key) && plainHash(string(h))}
}

// appendLine writes an entry as the plain line "key: hash". What a YAML parser
// would not read back as the same text is quoted; Go's quoting is YAML's.
func appendLine(out []byte, e entry) []byte {
	if e.plain {
		out = append(out, e.key...)
		out = append(out, ": "...)
		out = append(out, e.hash...)
		return append(out, '\n')
	}
	if plainKey(e.key) {
		out = append(out, e.key...)
	} else {
		out = strconv.AppendQuote(out, e.key)
	}
	out = append(out, ": "...)
	if plainHash(string(e.hash)) {
		out = append(out, e.hash...)
	} else {
		out = strconv.AppendQuote(out, string(e.hash))
	}
	return append(out, '\n')
}

// parseLine reads a line as appendLine writes it, without its end. White space
// behind it is allowed: editors leave it, and a carriage return is white space.
func parseLine(line string) (entry, bool) {
	if line == "" {
		return entry{}, false
	}
	if line[len(line)-1] <= ' ' {
		line = strings.TrimRight(line, " \t\r")
	}
	if at := len(line) - protocol.HashLen; at > 2 && line[at-2] == ':' && line[at-1] == ' ' {
		e := entry{key: line[:at-2], hash: protocol.Hash(line[at:]), plain: true}
		if plainKey(e.key) && plainHash(line[at:]) {
			return e, e.hash.Valid()
		}
	}
	return parseQuoted(line)
}

// parseQuoted reads a line in which the key or the hash is quoted.
func parseQuoted(line string) (entry, bool) {
	key, rest, ok := cutKey(line)
	if !ok {
		return entry{}, false
	}
	hash, ok := strings.CutPrefix(rest, ": ")
	if !ok {
		return entry{}, false
	}
	if len(hash) == protocol.HashLen+2 && hash[0] == '"' && hash[len(hash)-1] == '"' {
		hash = hash[1 : len(hash)-1]
	} else if !plainHash(hash) {
		return entry{}, false
	}
	return newEntry(key, protocol.Hash(hash)), protocol.Hash(hash).Valid()
}

// whyNot says why a line is not an entry.
func whyNot(line string) string {
	if _, rest, ok := cutKey(strings.TrimSpace(line)); ok && strings.HasPrefix(rest, ": ") {
		if _, err := protocol.ParseHash(strings.TrimSpace(rest[2:])); err != nil {
			return err.Error()
		}
	}
	return "want one entry, such as `name: hash`"
}

// checkThread refuses a thread that a line could not give back.
func checkThread(id string, head protocol.Hash) error {
	if problem := threadProblem(id); problem != "" {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: problem}
	}
	return checkEntry(id, head)
}

// checkEntry refuses what a line could not give back.
func checkEntry(key string, h protocol.Hash) error {
	if key == "" || !utf8.ValidString(key) {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%q cannot be a name", key)}
	}
	if !h.Valid() {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%q is not a hash", h)}
	}
	return nil
}

// cutKey splits a line behind its key.
func cutKey(line string) (key, rest string, ok bool) {
	if !strings.HasPrefix(line, `"`) {
		end := strings.IndexByte(line, ':')
		if end < 0 || !plainKey(line[:end]) {
			return "", "", false
		}
		return line[:end], line[end:], true
	}
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", "", false
	}
	key, err = strconv.Unquote(quoted)
	return key, line[len(quoted):], err == nil && key != ""
}

// What a character may be part of.
const (
	inKey    = 1 << iota // of a plain key
	inNumber             // of a number, in some YAML
	inLine               // of a line of ours
	inHead               // of a thread id or a hash: Crockford's characters, canonical
)

// class says what each byte may be part of.
var class = func() (c [256]byte) {
	for _, b := range []byte("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.") {
		c[b] |= inKey | inLine
	}
	for _, b := range []byte("0123456789eE-_.") {
		c[b] |= inNumber
	}
	for _, b := range []byte("0123456789ABCDEFGHJKMNPQRSTVWXYZ") {
		c[b] |= inHead
	}
	for _, b := range []byte(": \n") {
		c[b] |= inLine
	}
	return c
}()

// plainKey reports whether a key needs no quotes: every YAML parser, also one for
// YAML 1.1, reads it as text. It refuses more than it must.
func plainKey(key string) bool {
	if key == "" || key[0] == '-' || key[0] == '_' || key[0] == '.' {
		return false
	}
	all, number := byte(inKey), byte(inNumber)
	for i := range len(key) {
		all &= class[key[i]]
		number &= class[key[i]]
	}
	if all == 0 || number != 0 {
		return false
	}
	if key[0] == '0' && (key[1] == 'x' || key[1] == 'o' || key[1] == 'b') {
		return false
	}
	return len(key) > len("false") || !reserved(key)
}

// plainHash reports whether a YAML parser reads a hash as text and not as a
// number such as 12345E6789012.
func plainHash(hash string) bool {
	for i := range len(hash) {
		if class[hash[i]]&inNumber == 0 {
			return true
		}
	}
	return false
}

func reserved(key string) bool {
	switch strings.ToLower(key) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}
