package ocascli

import (
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
)

// The original's simplest types: @ocas/string, which is what it puts texts under,
// and its like. Their schemas are these, so their hashes follow from the store.

// primitives are the names behind "@ocas/", and the JSON type of each.
func primitives() [][2]string {
	return [][2]string{
		{"string", "string"}, {"number", "number"}, {"integer", "integer"}, {"boolean", "boolean"},
		{"bool", "boolean"}, {"object", "object"}, {"array", "array"}, {"null", "null"},
	}
}

// originals is the prefix of the original's names.
const originals = "@ocas/"

// primitive is the schema node of one of the original's types, false for another
// name.
func primitive(s cas.Store, name string) (cas.Node, bool) {
	for _, p := range primitives() {
		if name != originals+p[0] {
			continue
		}
		payload, err := cas.Encode(map[string]any{"type": p[1]})
		if err != nil {
			return cas.Node{}, false // it is a constant: a test would see it
		}
		meta := s.Kinds().MetaHash()
		return cas.Node{Hash: s.Algorithm().Sum(meta, payload), Type: meta, Payload: payload}, true
	}
	return cas.Node{}, false
}

// textType is the name under which a store has texts: the original has them under
// its own.
func textType(s cas.Store) string {
	if files, ok := s.(*fsstore.Store); ok && files.Originals() {
		return originals + "string"
	}
	return "text"
}

// isText reports whether a name means the type of texts.
func isText(name string) bool { return strings.TrimPrefix(name, "@uwf/") == "text" }
