package protocol

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is one of the node kinds that uwf itself writes. It grows by versions, of
// which each has a schema of its own and adds optional fields to the one before. A
// reader of any kind but workflow takes a newer version, too, and ignores what it
// does not know.
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

// Versions is how many versions of the kind this program knows: each has its file in schema/.
func (k Kind) Versions() int {
	for v := 2; ; v++ {
		f, err := schemas.Open("schema/" + Type{k, v}.String() + ".json")
		if err != nil {
			return v - 1
		}
		_ = f.Close() // it is in memory
	}
}

// Type is a version of a kind: what the type of a node stands for. The hash of its
// schema differs from store to store (it depends on the hash function), so a type
// is known by the title of its schema and never by a constant hash.
type Type struct {
	Kind    Kind
	Version int // from 1
}

// TypeOf is the type under which a payload is stored: the lowest version that can
// say it, so that what says nothing new keeps its hash.
func TypeOf(p Payload) Type { return Type{p.Kind(), p.Version()} }

// Types lists the types that this program knows.
func Types() (all []Type) {
	for _, k := range Kinds() {
		for v := range k.Versions() {
			all = append(all, Type{k, v + 1})
		}
	}
	return all
}

// Foundation lists the types whose schemas a store is made with. It is frozen: who
// added to it would take for durable what older stores do not have, and two
// programs would write different bundles of the same thread.
func Foundation() []Type {
	return []Type{{KindText, 1}, {KindSuspend, 1}, {KindTurn, 1}, {KindDetail, 1}, {KindWorkflow, 1}, {KindStart, 1}, {KindStep, 1}}
}

// TitlePrefix begins the titles of the schemas of our kinds, and of no others.
const TitlePrefix = "@uwf/"

// String is the name of the type: "step", or "step.2".
func (t Type) String() string {
	if t.Version == 1 {
		return string(t.Kind)
	}
	return string(t.Kind) + "." + strconv.Itoa(t.Version)
}

// Title is the title of the type's schema, such as "@uwf/step.2".
func (t Type) Title() string { return TitlePrefix + t.String() }

// Known reports whether this program knows the version.
func (t Type) Known() bool { return t.Version >= 1 && t.Version <= t.Kind.Versions() }

// ParseType reads the name of a type, also of a version that this program does not
// know.
func ParseType(name string) (Type, bool) {
	kind, number, versioned := strings.Cut(name, ".")
	t := Type{Kind(kind), 1}
	if versioned {
		t.Version, _ = strconv.Atoi(number)
	}
	return t, slices.Contains(Kinds(), t.Kind) && t.Version >= 1 && t.String() == name
}

// SchemaJSON is the JSON Schema of a type. It panics for a type that is not in
// [Types]: such a value is a programming error.
func SchemaJSON(t Type) []byte {
	b, err := schemas.ReadFile("schema/" + t.String() + ".json")
	if err != nil {
		panic(fmt.Sprintf("protocol: no schema for %s", t))
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
