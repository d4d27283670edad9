package cas

import (
	"bytes"
	"encoding/json"
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
}

// metaKind stands for the meta-schema among the kinds that are remembered.
const metaKind protocol.Kind = ""

// NewKinds returns the kinds under a hash function.
func NewKinds(a Algorithm) *Kinds {
	return &Kinds{algorithm: a, nodes: map[protocol.Kind]Node{}}
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
		payload := mustEncodeSchema(protocol.SchemaJSON(kind))
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
		payload := mustEncodeSchema(protocol.MetaSchemaJSON())
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

// mustEncodeSchema encodes a schema that is part of the program; a test encodes
// all of them.
func mustEncodeSchema(text []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var schema any
	err := dec.Decode(&schema)
	if err == nil {
		var payload []byte
		if payload, err = Encode(schema); err == nil {
			return payload
		}
	}
	panic(fmt.Sprintf("cas: an embedded schema is broken: %v", err))
}
