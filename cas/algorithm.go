package cas

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"

	"github.com/united-workforce/uwf/protocol"
)

// Algorithm is a hash function of 64 bits. It is a property of a store.
type Algorithm string

// The hash functions.
const (
	XXH3  Algorithm = "xxh3"  // XXH3-64, the default
	XXH64 Algorithm = "xxh64" // the original's
)

// Known reports whether this program has the function.
func (a Algorithm) Known() bool { return a == XXH3 || a == XXH64 }

// Sum is the hash of a node: H(ascii(typ) ‖ payload). An empty typ gives the
// hash of a node that is its own type. It is the empty hash, which names
// nothing, if the function is not known.
func (a Algorithm) Sum(typ Hash, payload []byte) Hash {
	switch a {
	case XXH3:
		var h xxh3.Hasher
		_, _ = h.WriteString(string(typ))
		_, _ = h.Write(payload)
		return protocol.HashOf(h.Sum64())
	case XXH64:
		var h xxhash.Digest
		h.Reset()
		_, _ = h.WriteString(string(typ))
		_, _ = h.Write(payload)
		return protocol.HashOf(h.Sum64())
	}
	return ""
}

// MetaHash is the hash of the meta-schema, which is its own type.
func (a Algorithm) MetaHash() Hash { return NewKinds(a).MetaHash() }

// Matches reports whether a node has the hash that it claims.
func (a Algorithm) Matches(n Node) bool {
	if !n.Hash.Valid() {
		return false
	}
	if n.Type == n.Hash {
		return a.Sum("", n.Payload) == n.Hash
	}
	return a.Sum(n.Type, n.Payload) == n.Hash
}

// Check reports why a node must not be stored: a hash or type in the wrong
// form, a payload that is not canonical or too big, or a hash that is not the
// node's. Every [Store] checks what it is given.
func (a Algorithm) Check(n Node) error {
	switch {
	case !n.Hash.Valid():
		return fmt.Errorf("%q is not a hash", n.Hash)
	case !n.Type.Valid():
		return fmt.Errorf("node %s: type %q is not a hash", n.Hash, n.Type)
	case n.Timestamp < 0 || n.Timestamp > maxSafe:
		return fmt.Errorf("node %s: timestamp %d is out of range", n.Hash, n.Timestamp)
	}
	if err := CheckCanonical(n.Payload); err != nil {
		return fmt.Errorf("node %s: %w", n.Hash, err)
	}
	if !a.Matches(n) {
		return &CorruptError{Hash: n.Hash, Reason: "the node to be stored has another " + string(a) + " hash"}
	}
	return nil
}
