// Package cas is the content-addressed store: nodes that never change, named by
// the hash of what they say. Packages fsstore and memstore implement [Store];
// castest is the suite that both pass.
//
// Invariants:
//   - a node read from a store has the hash that it was asked for, or the read
//     is an error; a damaged or missing node is never passed over in silence;
//   - a node is never changed: a put of an existing hash compares the bytes and
//     refuses a collision;
//   - what a [Store.Commit] was given is durable, whole, when it returns.
package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Hash names a node.
type Hash = protocol.Hash

// Node is one immutable piece of content.
type Node struct {
	Hash      Hash
	Type      Hash   // of the JSON Schema node that describes Payload
	Payload   []byte // canonical CBOR ([Encode])
	Timestamp int64  // ms at first put; not part of the hash
}

// Equal reports whether two nodes have the same content; timestamps may differ.
func (n Node) Equal(m Node) bool {
	return n.Hash == m.Hash && n.Type == m.Type && bytes.Equal(n.Payload, m.Payload)
}

// Getter reads nodes.
type Getter interface {
	// Get returns the node with hash h, verified. It returns an error that
	// wraps [ErrNotFound], a [*CorruptError], or a [*RedactedError].
	Get(ctx context.Context, h Hash) (Node, error)
}

// Reader is what typed reads need: a Getter that knows its hash function and,
// under it, the types of our kinds. Every Store is one, and every [*Batch].
type Reader interface {
	Getter
	// Algorithm is the store's hash function; it never changes.
	Algorithm() Algorithm
	// Kinds is the one value that remembers the schemas of our kinds for this
	// store.
	Kinds() *Kinds
}

// Store holds nodes for many processes at once.
type Store interface {
	Reader
	// Has reports whether a node is there, without reading it.
	Has(ctx context.Context, h Hash) (bool, error)
	// Put makes nodes readable by every process. They survive a kill, but not
	// a power cut until they are part of a Commit. A node that is there already
	// stays as it is, its timestamp included; one that was redacted stays
	// redacted. Errors: those of
	// [Algorithm.Check], [*CollisionError], [ErrReadOnly], and a
	// [*CorruptError] if what is there is damaged. When it fails, some of the
	// nodes may have been put.
	Put(ctx context.Context, nodes ...Node) error
	// Commit is Put and makes all the nodes durable, those that were there
	// already included.
	Commit(ctx context.Context, nodes ...Node) error
	// All yields the hashes of all nodes that begin with prefix (canonical
	// characters, may be empty), in order. A fault is yielded with an empty
	// hash, and the listing goes on with what can still be read.
	All(ctx context.Context, prefix string) iter.Seq2[Hash, error]
}

// The ways in which a store fails.
var (
	ErrNotFound = errors.New("node not found")
	ErrReadOnly = errors.New("store is read-only")
)

// CorruptError means that what is stored under a hash is not what the hash
// promises.
type CorruptError struct {
	Hash   Hash
	Path   string // of the file, if there is one
	Reason string
	// Cut: what is there begins as a node and then ends, or goes on with zeros. So
	// does what a power cut leaves of a node that was put and not committed.
	Cut bool
}

// Error implements error.
func (e *CorruptError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("node %s is corrupt: %s", e.Hash, e.Reason)
	}
	return fmt.Sprintf("node %s is corrupt: %s (%s)", e.Hash, e.Reason, e.Path)
}

// CollisionError means that two different contents have one hash.
type CollisionError struct{ Hash Hash }

// Error implements error.
func (e *CollisionError) Error() string {
	return fmt.Sprintf("hash collision: %s is taken by a node with other content", e.Hash)
}

// SchemaError means that a value does not satisfy the schema of its type.
type SchemaError struct {
	Type     Hash // the meta-schema's, if the value is itself a schema
	Problems []jsonschema.Problem
}

// Error implements error. It shows the first problem; Problems has all.
func (e *SchemaError) Error() string {
	if len(e.Problems) == 0 {
		return fmt.Sprintf("value does not satisfy schema %s", e.Type)
	}
	more := ""
	if n := len(e.Problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("value does not satisfy schema %s: %s%s", e.Type, e.Problems[0], more)
}

// AmbiguousError means that more than one node has a hash that begins with
// Prefix. Candidates are the first of them, in order.
type AmbiguousError struct {
	Prefix     string
	Candidates []Hash
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is ambiguous: %d or more nodes begin with it", e.Prefix, len(e.Candidates))
}

// TypeError means that a node is not of the kind that was asked for.
type TypeError struct {
	Hash Hash
	Got  Hash
	Want protocol.Kind
}

// Error implements error.
func (e *TypeError) Error() string {
	return fmt.Sprintf("node %s is not a %s node (its type is %s)", e.Hash, e.Want, e.Got)
}
