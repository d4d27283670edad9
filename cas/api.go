package cas

import (
	"context"
	"iter"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Algorithm is a hash function of 64 bits.
type Algorithm string

// The hash functions.
const (
	XXH3  Algorithm = "xxh3"  // XXH3-64, the default
	XXH64 Algorithm = "xxh64" // the original's
)

// Sum is the hash of a node: H(ascii(type) ‖ payload).
func (a Algorithm) Sum(typ Hash, payload []byte) Hash { panic("unwritten") }

// KindHash is the hash of the schema of one of our kinds; MetaHash that of the meta-schema.
func (a Algorithm) KindHash(k protocol.Kind) Hash { panic("unwritten") }
func (a Algorithm) MetaHash() Hash                { panic("unwritten") }

// Encode writes a value as canonical CBOR. Value is a JSON value, or anything
// that encoding/json can write. Errors: what JSON cannot say, invalid UTF-8.
func Encode(value any) ([]byte, error) { panic("unwritten") }

// Decode reads canonical CBOR: nil, bool, int64, float64, string, []any, map[string]any.
func Decode(payload []byte) (any, error) { panic("unwritten") }

// Value is the payload as a JSON value.
func (n Node) Value() (any, error) { panic("unwritten") }

// Decode reads the payload into a struct with json tags.
func (n Node) Decode(into any) error { panic("unwritten") }

// Read gets a node of one of our kinds: Read[protocol.Step](ctx, g, alg, h).
// Errors: those of Get, [*TypeError], [*CorruptError].
func Read[P protocol.Payload](ctx context.Context, s Reader, h Hash) (P, error) { panic("unwritten") }

// Reader is what typed reads need: a Getter that knows its hash function. Every Store is one, and every Batch.
type Reader interface {
	Getter
	Algorithm() Algorithm
}

// Batch collects the nodes of one commit. What was added can be read through it
// before it is written. Payloads are validated when they are added.
// A Batch is not safe for concurrent use.
type Batch struct{ _ struct{} }

// NewBatch returns an empty batch on a store; now gives the timestamps.
func NewBatch(s Store, now func() time.Time) *Batch { panic("unwritten") }

// Add adds a payload of one of our kinds, its schema node too.
func (b *Batch) Add(ctx context.Context, p protocol.Payload) (Hash, error) { panic("unwritten") }

// AddValue adds a payload of any type that the store or the batch has a schema
// for, validated. Errors: [*SchemaError] if it does not satisfy the schema.
func (b *Batch) AddValue(ctx context.Context, typ Hash, value any) (Hash, error) { panic("unwritten") }

// AddSchema checks and adds a JSON Schema.
func (b *Batch) AddSchema(ctx context.Context, schema any) (Hash, error) { panic("unwritten") }

// Put writes what was added, readable but not durable; Commit makes all that
// was ever added to the batch durable.
func (b *Batch) Put(ctx context.Context) error    { panic("unwritten") }
func (b *Batch) Commit(ctx context.Context) error { panic("unwritten") }

func (b *Batch) Get(ctx context.Context, h Hash) (Node, error) { panic("unwritten") }
func (b *Batch) Algorithm() Algorithm                          { panic("unwritten") }

// Schema returns the JSON Schema of a type as a JSON value.
func Schema(ctx context.Context, r Reader, typ Hash) (any, error) { panic("unwritten") }

// Refs returns the hashes that a node refers to: strings at places whose schema
// says format ocas_ref, without duplicates, in order of appearance.
func Refs(ctx context.Context, r Reader, n Node) ([]Hash, error) { panic("unwritten") }

// Walk yields every node reachable from the roots once, breadth first; a fault
// is yielded with the hash set in the node, and the walk goes on.
func Walk(ctx context.Context, r Reader, roots []Hash, o WalkOptions) iter.Seq2[Node, error] {
	panic("unwritten")
}

// WalkOptions: FollowTypes also visits the schema of each node.
type WalkOptions struct{ FollowTypes bool }

// Verify reads a node and checks its hash and its schema.
func Verify(ctx context.Context, r Reader, h Hash) error { panic("unwritten") }

// Expand is a node's payload with every ref replaced by what it refers to, down
// to depth levels (<0: all). A cycle keeps its hash.
func Expand(ctx context.Context, r Reader, h Hash, depth int) (any, error) { panic("unwritten") }

// Resolve finds the one node whose hash begins with prefix. Errors:
// [ErrNotFound], [*AmbiguousError].
func Resolve(ctx context.Context, s Store, prefix string) (Hash, error) { panic("unwritten") }
