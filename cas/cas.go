// Package cas defines the content-addressed store: immutable nodes, identified by the hash of their content.
// Package fsstore implements [Store]; package castest is the test suite of implementations.
//
// Invariants:
//   - a node read from a store has the requested hash, or the read returns an
//     error; a damaged or missing node is never silently skipped;
//   - a node never changes: a put of an existing hash compares the bytes and
//     rejects a collision;
//   - all nodes passed to [Store.Commit] are completely durable when it returns.
package cas

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/united-workforce/uwf/internal/thirdparty/xxh3"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Hash identifies a node.
type Hash = protocol.Hash

// Node is one immutable piece of content.
type Node struct {
	Hash      Hash
	Type      Hash   // hash of the JSON Schema node that describes Payload
	Payload   []byte // canonical CBOR ([Encode])
	Timestamp int64  // time of the first put in ms; not part of the hash
}

// Equal reports whether two nodes have the same content, regardless of timestamps.
func (n Node) Equal(m Node) bool {
	return n.Hash == m.Hash && n.Type == m.Type && bytes.Equal(n.Payload, m.Payload)
}

// Getter reads nodes.
type Getter interface {
	// Get returns the node with hash h, verified. It returns an error that
	// wraps [ErrNotFound], a [*CorruptError], or a [*RedactedError].
	Get(ctx context.Context, h Hash) (Node, error)
}

// Reader is the interface for typed reads: a Getter with its hash function and the types of our kinds. Every
// [Store] and [*Batch] implements it.
type Reader interface {
	Getter
	// Algorithm returns the store's hash function, which never changes.
	Algorithm() Algorithm
	// Kinds returns the store's only value that caches the schemas of our kinds.
	Kinds() *Kinds
}

// Store holds nodes and can be used by many processes concurrently.
type Store interface {
	Reader
	// Has reports whether a node exists, without reading it.
	Has(ctx context.Context, h Hash) (bool, error)
	// Put makes nodes readable by every process. They survive a kill, but a power cut only after a Commit
	// that includes them. An existing node stays unchanged, including its timestamp; a redacted one stays
	// redacted, and a damaged one is replaced. It returns the errors of [Algorithm.Check], [*CollisionError],
	// [ErrReadOnly], and a [*CorruptError] if it is unknown whether a node is redacted. After an error, some of the
	// nodes might have been put.
	Put(ctx context.Context, nodes ...Node) error
	// Commit is Put and makes all the nodes durable, including existing ones.
	Commit(ctx context.Context, nodes ...Node) error
	// All yields the hashes of all nodes that begin with prefix (canonical characters, can be empty), in
	// order. It yields an error with an empty hash and continues with what is still readable.
	All(ctx context.Context, prefix string) iter.Seq2[Hash, error]
}

// Errors of a store.
var (
	ErrNotFound = errors.New("node not found")
	ErrReadOnly = errors.New("store is read-only")
)

// CorruptError means that the stored content doesn't match its hash.
type CorruptError struct {
	Hash   Hash
	Path   string // of the file, if any
	Reason string
	// Cut means that the data starts like a node and then ends, or continues with zeros, as after a power cut
	// between put and commit.
	Cut bool
}

func (e *CorruptError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("node %s is corrupt: %s", e.Hash, e.Reason)
	}
	return fmt.Sprintf("node %s is corrupt: %s (%s)", e.Hash, e.Reason, e.Path)
}

// CollisionError means that two different contents have the same hash.
type CollisionError struct{ Hash Hash }

func (e *CollisionError) Error() string {
	return fmt.Sprintf("hash collision: %s belongs to a node with other content", e.Hash)
}

// SchemaError means that a value doesn't match the schema of its type.
type SchemaError struct {
	Type     Hash // the meta-schema's hash if the value is itself a schema
	Problems []jsonschema.Problem
}

// Error shows the first problem; Problems contains all.
func (e *SchemaError) Error() string {
	if len(e.Problems) == 0 {
		return fmt.Sprintf("value does not match schema %s", e.Type)
	}
	more := ""
	if n := len(e.Problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("value does not match schema %s: %s%s", e.Type, e.Problems[0], more)
}

// AmbiguousError means that the hashes of several nodes start with Prefix. Candidates lists the first of
// them, in order.
type AmbiguousError struct {
	Prefix     string
	Candidates []Hash
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is ambiguous: at least %d nodes start with it", e.Prefix, len(e.Candidates))
}

// TypeError means that a node isn't of the requested kind.
type TypeError struct {
	Hash Hash
	Got  Hash
	Want protocol.Kind
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("node %s is not a %s node (its type is %s)", e.Hash, e.Want, e.Got)
}

// Algorithm is a 64-bit hash function, a property of a store.
type Algorithm string

// The hash functions.
const (
	XXH3  Algorithm = "xxh3"  // XXH3-64, the default
	XXH64 Algorithm = "xxh64" // the original's
)

// Known reports whether this program implements the function.
func (a Algorithm) Known() bool { return a == XXH3 || a == XXH64 }

// Sum returns the hash of a node: H(ascii(typ) ‖ payload). An empty typ gives the hash of a node that is its
// own type. For an unknown function it returns the empty hash, which identifies no node.
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

// MetaHash returns the hash of the meta-schema, which is its own type.
func (a Algorithm) MetaHash() Hash { return a.Sum("", schemaPayload("meta")) }

// Matches reports whether a node's hash is correct.
func (a Algorithm) Matches(n Node) bool {
	if !n.Hash.Valid() {
		return false
	}
	if n.Type == n.Hash {
		return a.Sum("", n.Payload) == n.Hash
	}
	return a.Sum(n.Type, n.Payload) == n.Hash
}

// Check returns the reason why a node must not be stored: a malformed hash or type, a payload that isn't
// canonical or too large, or a wrong hash. Every [Store] checks its nodes.
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
		return &CorruptError{Hash: n.Hash, Reason: "the node has another " + string(a) + " hash"}
	}
	return nil
}

// Distinct returns the given nodes without repetitions. It returns the errors of [Algorithm.Check], and a
// [*CollisionError].
func (a Algorithm) Distinct(ctx context.Context, nodes []Node) (distinct []Node, err error) {
	known := make(map[Hash]Node, len(nodes))
	for _, n := range nodes {
		if err := cmp.Or(ctx.Err(), a.Check(n)); err != nil {
			return nil, err
		}
		twin, ok := known[n.Hash]
		switch {
		case !ok:
			known[n.Hash], distinct = n, append(distinct, n)
		case !twin.Equal(n):
			return nil, &CollisionError{Hash: n.Hash}
		}
	}
	return distinct, nil
}

// SharedLocker is a store with garbage collection.
type SharedLocker interface {
	// LockShared blocks the garbage collector until release is called. Several holders are allowed, but each
	// should hold it only briefly, because the collector waits.
	LockShared(ctx context.Context) (release func() error, err error)
}

// LockShared locks a store if it supports that. A caller that puts nodes and then references the newest of
// them where the collector looks, in the index or in a run's record, must hold the lock from before the first
// read or put that it relies on until the reference is written. See docs/storage.md.
func LockShared(ctx context.Context, s Store) (release func() error, err error) {
	if h, ok := s.(SharedLocker); ok {
		return h.LockShared(ctx)
	}
	return func() error { return nil }, ctx.Err()
}

// Collected is a store from which others can remove nodes.
type Collected interface {
	SharedLocker
	// Generation returns a value that changes when nodes are removed.
	Generation() (string, error)
}

// Settle runs prepare, which finds or puts nodes that nothing references yet, and then refer, which references them
// where the collector looks. The collector waits only for refer: if nodes were removed in the meantime, prepare runs
// again. The last time it runs while none can be removed, so that it also ends in a store that is collected all
// the time.
func Settle(ctx context.Context, s Collected, prepare, refer func() error) (err error) {
	const patient = 3
	for range patient {
		before, err := s.Generation()
		if err != nil {
			return err
		}
		if failed := prepare(); failed != nil {
			if now, err := s.Generation(); err != nil || now == before {
				return failed
			}
			continue // perhaps because nodes were removed
		}
		if settled, err := referIf(ctx, s, before, refer); settled || err != nil {
			return err
		}
	}
	release, err := s.LockShared(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := prepare(); err != nil {
		return err
	}
	return refer()
}

// referIf calls refer if the store still has a generation.
func referIf(ctx context.Context, s Collected, generation string, refer func() error) (done bool, err error) {
	release, err := s.LockShared(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	now, err := s.Generation()
	if err != nil || now != generation {
		return false, err
	}
	return true, refer()
}

// CheckTitle rejects a schema with a title reserved for the schemas of our kinds, because readers would
// misinterpret its nodes. Schemas already in a store stay readable. It accepts nodes that aren't schemas; and if the node
// was received, a version of our kinds that a newer uwf has made. The error is a [*protocol.Error] of code invalid.
func CheckTitle(kinds *Kinds, n Node, received bool) error {
	if n.Type != kinds.MetaHash() && n.Type != n.Hash {
		return nil
	}
	value, err := Decode(n.Payload)
	if err != nil {
		return nil // reported where it is checked
	}
	schema, _ := value.(map[string]any)
	title, _ := schema["title"].(string)
	if !strings.HasPrefix(title, protocol.TitlePrefix) {
		return nil
	}
	_, builtin := kinds.Builtin(n.Hash)
	if _, newer := kinds.newer(value); builtin || newer && received {
		return nil
	}
	return &protocol.Error{
		Code:    protocol.CodeInvalid,
		Message: fmt.Sprintf("schema %s has the reserved title %q: titles that start with %s are for uwf's schemas", n.Hash, title, protocol.TitlePrefix),
	}
}

// Read returns a node of one of our kinds: Read[protocol.Start](ctx, store, h). It returns the errors of Get
// and of [As].
func Read[P protocol.Payload](ctx context.Context, r Reader, h Hash) (P, error) {
	n, err := r.Get(ctx, h)
	if err != nil {
		var zero P
		return zero, err
	}
	return As[P](ctx, r, n)
}

// As decodes a node as one of our kinds, in any version; it ignores unknown fields. In a store with the
// original's hash function it also converts the original's nodes, except steps, whose place only the chain
// determines (package thread). It returns a [*TypeError] for a node of another kind, a [*CorruptError] for
// content that is invalid for its kind, a [*protocol.Error] of code unsupported-version for a workflow of a
// newer version, and the errors of [Schema] for an unknown type.
func As[P protocol.Payload](ctx context.Context, r Reader, n Node) (P, error) {
	var zero P
	want := zero.Kind()
	kind, version, err := r.Kinds().Of(ctx, r, n.Type)
	switch {
	case err != nil:
		return zero, fmt.Errorf("node %s: %w", n.Hash, err)
	case kind != want, version == 0 && kind == protocol.KindStep:
		return zero, &TypeError{Hash: n.Hash, Got: n.Type, Want: want}
	case version == 0:
		return asOriginal[P](n)
	case kind == protocol.KindWorkflow && version > kind.Versions():
		// Its new features would be ignored.
		return zero, &protocol.Error{Code: protocol.CodeUnsupportedVersion,
			Message: fmt.Sprintf("workflow %s was made by a newer uwf", n.Hash)}
	}
	p, err := decodeAs[P](n)
	if err == nil && p.Version() > version {
		// The collector doesn't see refs in these fields.
		return zero, &CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("it has fields that a %s does not have",
			protocol.Type{Kind: kind, Version: version})}
	}
	return p, err
}

// decodeAs decodes a node of a known type.
func decodeAs[P protocol.Payload](n Node) (P, error) {
	var p, zero P
	if err := decodeInto(n.Payload, &p); err != nil {
		return zero, &CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	if err := check(n, p); err != nil {
		return zero, err
	}
	return p, nil
}

// check validates a payload against its kind.
func check(n Node, p protocol.Payload) error {
	if err := p.Validate(); err != nil {
		return &CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("it is not a %s: %v", p.Kind(), err)}
	}
	return nil
}

// recallBytes bounds the cache of a [Recalling] reader: the nodes needed by several parts of a step are few
// and small.
const recallBytes = 1 << 20

// Recalling returns a reader that reads a node only once, unless there are many. Use it for one step only: it
// doesn't notice later damage or redaction of a node. It is safe for concurrent use if r is.
func Recalling(r Reader) Reader {
	return &recalling{Reader: r, nodes: map[Hash]Node{}, room: recallBytes}
}

type recalling struct {
	Reader
	mu    sync.Mutex
	nodes map[Hash]Node
	room  int
}

// Get implements [Getter].
func (r *recalling) Get(ctx context.Context, h Hash) (Node, error) {
	r.mu.Lock()
	n, ok := r.nodes[h]
	r.mu.Unlock()
	if ok {
		return n, ctx.Err()
	}
	n, err := r.Reader.Get(ctx, h)
	if err != nil {
		return n, err
	}
	const entry = 256 // approximate overhead of an entry
	r.mu.Lock()
	defer r.mu.Unlock()
	if size := len(n.Payload) + entry; size <= r.room {
		r.nodes[h], r.room = n, r.room-size
	}
	return n, nil
}

// Compactor is a store from which nodes can be removed.
type Compactor interface {
	// Compact begins a compaction of what was put before a time. Only one process at a time compacts a store;
	// others wait. dry changes nothing, and the compaction can't be finished.
	Compact(ctx context.Context, before time.Time, dry bool) (Compaction, error)
}

// Compaction removes nodes from a store while others use it.
type Compaction interface {
	// Nodes yields all nodes, in any order.
	Nodes(ctx context.Context) iter.Seq2[Item, error]
	// New yields the nodes put since Nodes listed all, also those put again.
	New(ctx context.Context) iter.Seq2[Hash, error]
	// Write prepares the removal of all nodes for which keep returns false. It changes nothing that readers see.
	Write(ctx context.Context, keep func(Hash) bool) error
	// Finish stops writers, calls recheck, and removes the nodes for which keep returned false in Write, and
	// still does.
	Finish(ctx context.Context, recheck func() error, keep func(Hash) bool) error
	// Release ends the compaction, finished or not.
	Release() error
}

// Item is a node of a store that is being compacted.
type Item struct {
	Hash      Hash
	Size      int64     // in bytes
	At        time.Time // of its last put, or later; in the future if it stays in any case
	Tombstone bool
}
