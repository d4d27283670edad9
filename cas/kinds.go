package cas

import (
	"embed"
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/protocol"
)

// Kinds knows the schema nodes of our kinds, and the meta-schema, under one
// hash function. Each is computed when it is first asked for and then
// remembered. Safe for concurrent use.
type Kinds struct {
	algorithm Algorithm
	mu        sync.Mutex
	nodes     map[protocol.Kind]Node
	originals map[Hash]protocol.Kind // types whose schemas were read; "": not the original's
}

// metaKind stands for the meta-schema among the kinds that are remembered.
const metaKind protocol.Kind = ""

// NewKinds returns the kinds under a hash function.
func NewKinds(a Algorithm) *Kinds {
	return &Kinds{algorithm: a, nodes: map[protocol.Kind]Node{}, originals: map[Hash]protocol.Kind{}}
}

// Hash is the hash of a kind's schema: the type of the nodes of that kind.
func (k *Kinds) Hash(kind protocol.Kind) Hash { return k.Schema(kind).Hash }

// MetaHash is the hash of the meta-schema: the type of schema nodes.
func (k *Kinds) MetaHash() Hash { return k.Meta().Hash }

// Schema is the node of a kind's schema, without a timestamp.
func (k *Kinds) Schema(kind protocol.Kind) Node {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.remember(kind, func() Node {
		payload := schemaPayload(string(kind))
		meta := k.meta().Hash
		return Node{Hash: k.algorithm.Sum(meta, payload), Type: meta, Payload: payload}
	})
}

// Meta is the node of the meta-schema, without a timestamp.
func (k *Kinds) Meta() Node {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.meta()
}

func (k *Kinds) meta() Node {
	return k.remember(metaKind, func() Node {
		payload := schemaPayload("meta")
		h := k.algorithm.Sum("", payload)
		return Node{Hash: h, Type: h, Payload: payload}
	})
}

func (k *Kinds) remember(kind protocol.Kind, compute func() Node) Node {
	if n, ok := k.nodes[kind]; ok {
		return n
	}
	n := compute()
	k.nodes[kind] = n
	return n
}

// schemaFiles holds the schemas of package protocol as [Encode] writes them:
// reading and encoding JSON would cost every process more than all its other
// work on the store. A test keeps them equal.
//
//go:embed kinds/*.cbor
var schemaFiles embed.FS

//go:generate go test -run TestSchemaFiles -update .

// schemaPayload panics for a kind that is not in protocol.Kinds: such a value is
// a programming error.
func schemaPayload(name string) []byte {
	payload, err := schemaFiles.ReadFile("kinds/" + name + ".cbor")
	if err != nil {
		panic(fmt.Sprintf("cas: no schema for kind %q", name))
	}
	return payload
}
