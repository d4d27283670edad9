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
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/protocol"
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

// Getter reads nodes.
type Getter interface {
	// Get returns the node with hash h, verified. It returns an error that
	// wraps [ErrNotFound], or a [*CorruptError].
	Get(ctx context.Context, h Hash) (Node, error)
}

// Store holds nodes for many processes at once.
type Store interface {
	Getter
	// Algorithm is the store's hash function; it never changes.
	Algorithm() Algorithm
	// Has reports whether a node is there, without reading it.
	Has(ctx context.Context, h Hash) (bool, error)
	// Put makes nodes readable by every process. They survive a kill, but not
	// a power cut until they are part of a Commit. Errors: [*CollisionError],
	// [ErrReadOnly].
	Put(ctx context.Context, nodes ...Node) error
	// Commit is Put and makes all the nodes durable, those that were there
	// already included.
	Commit(ctx context.Context, nodes ...Node) error
	// All yields the hashes of all nodes that begin with prefix (canonical
	// characters, may be empty), in order.
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
