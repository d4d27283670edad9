package cas

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/protocol"
)

// CheckTitle refuses a schema that is titled as only the schemas of our kinds are,
// and is none of them: readers would take what has it for what it is not. Those
// that a store has already stay readable. Of a node that is no schema nothing is
// asked. The error is a [*protocol.Error] of code invalid.
func CheckTitle(kinds *Kinds, n Node) error {
	if n.Type != kinds.MetaHash() && n.Type != n.Hash {
		return nil
	}
	value, err := Decode(n.Payload)
	if err != nil {
		return nil // which is found where it is checked
	}
	schema, _ := value.(map[string]any)
	title, _ := schema["title"].(string)
	if !strings.HasPrefix(strings.Map(seen, title), protocol.TitlePrefix) {
		return nil
	}
	if _, ok := kinds.Builtin(n.Hash); ok {
		return nil
	}
	return &protocol.Error{
		Code:    protocol.CodeInvalid,
		Message: fmt.Sprintf("schema %s is titled %q: titles that begin with %s are for uwf's own schemas, and this is none that this program knows", n.Hash, title, protocol.TitlePrefix),
	}
}

// seen is a character as a person sees it: capital and wide letters are the others,
// and white space and what cannot be seen is nothing.
func seen(r rune) rune {
	const wide, wideEnd = '\uff01', '\uff5e' // ASCII, as wide as the letters of Chinese
	switch {
	case unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.Is(unicode.M, r):
		return -1
	case wide <= r && r <= wideEnd:
		r -= wide - '!'
	}
	return unicode.ToLower(r)
}
