package protocol

import (
	"embed"
	"fmt"
)

// Kind is one of the node kinds that uwf itself writes. The hash of a kind's
// schema differs from store to store (it depends on the hash function), so a
// kind is found by its title and never by a constant hash.
type Kind string

// The node kinds.
const (
	KindWorkflow Kind = "workflow"
	KindStart    Kind = "start"
	KindStep     Kind = "step"
	KindDetail   Kind = "detail"
	KindTurn     Kind = "turn"
	KindText     Kind = "text"
	KindSuspend  Kind = "suspend"
)

//go:embed schema/*.json
var schemas embed.FS

// Kinds lists all kinds, referenced kinds before those that refer to them.
func Kinds() []Kind {
	return []Kind{KindText, KindSuspend, KindTurn, KindDetail, KindWorkflow, KindStart, KindStep}
}

// Title is the title of the kind's schema, such as "@uwf/step".
func (k Kind) Title() string { return "@uwf/" + string(k) }

// SchemaJSON is the JSON Schema of a kind. It panics for a kind that is not in
// [Kinds]: such a value is a programming error.
func SchemaJSON(k Kind) []byte {
	b, err := schemas.ReadFile("schema/" + string(k) + ".json")
	if err != nil {
		panic(fmt.Sprintf("protocol: no schema for kind %q", k))
	}
	return b
}

// MetaSchemaJSON is the schema that every schema node satisfies. Its node is
// its own type. It equals the original's, so that a store of the original's
// (hash function xxh64) has the same meta-schema hash.
func MetaSchemaJSON() []byte {
	b, err := schemas.ReadFile("schema/meta.json")
	if err != nil {
		panic("protocol: no meta-schema")
	}
	return b
}
