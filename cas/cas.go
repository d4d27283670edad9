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
	"strings"
	"unicode"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"

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

// SharedLocker is a store from which what nothing names can be collected.
type SharedLocker interface {
	// LockShared keeps the collector away until release is called. Any number may
	// hold a store at once; nobody may for longer than an instant, because the
	// collector waits.
	LockShared(ctx context.Context) (release func() error, err error)
}

// LockShared locks a store if it can be locked. Whoever puts nodes and then names the
// newest of them where the collector looks, in the index or in a run's record,
// holds the store from before the first read or put that it relies on until the
// name is written. See docs/storage.md.
func LockShared(ctx context.Context, s Store) (release func() error, err error) {
	if h, ok := s.(SharedLocker); ok {
		return h.LockShared(ctx)
	}
	return func() error { return nil }, ctx.Err()
}

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
		Code: protocol.CodeInvalid,
		Message: fmt.Sprintf("schema %s is titled %q: titles that begin with %s are for uwf's own schemas, and this is "+
			"none that this program knows", n.Hash, title, protocol.TitlePrefix),
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
