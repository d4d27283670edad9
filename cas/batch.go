package cas

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Batch collects the nodes of one commit. Added nodes can be read through it before they are written, and
// nodes of the store are read only once ([Recalling]). Payloads are validated when they are added, and the
// schema of each is part of the batch, so that no durable node has a type that isn't durable (except with
// [Batch.AddDurable]).
//
// A Batch is not safe for concurrent use.
type Batch struct {
	store    Store
	recall   Reader // reader of the store
	now      func() time.Time
	added    map[Hash]Node // except dropped ones
	order    []Hash        // all nodes ever added
	written  int           // number of nodes in order that are in the store
	dropped  int           // number of dropped nodes, which are only in the store
	held     int           // bytes of payloads between these two
	verifier *Verifier
}

// keepBytes bounds the nodes that a batch keeps in memory although they are in the store: a step can have
// gigabytes of turns.
const keepBytes = 8 << 20

// NewBatch returns an empty batch on a store; now provides the timestamps.
func NewBatch(s Store, now func() time.Time) *Batch {
	b := &Batch{store: s, recall: Recalling(s), now: now, added: map[Hash]Node{}}
	b.verifier = NewVerifier(b)
	return b
}

// Add adds a payload of one of our kinds, and its schema. Its errors come from the payload's Validate and
// from [Encode].
func (b *Batch) Add(ctx context.Context, p protocol.Payload) (Hash, error) {
	if err := cmp.Or(ctx.Err(), p.Validate()); err != nil {
		return "", err
	}
	payload, err := Encode(p)
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.Kind(), err)
	}
	typ, err := b.addSchemaNodes(b.Kinds().Schema(protocol.TypeOf(p)))
	if err != nil {
		return "", err
	}
	return b.add(typ, payload)
}

// AddValue adds a payload of any type whose schema is in the store or the batch. It returns a [*SchemaError]
// if the value doesn't match the schema, and the errors of [Schema] and [jsonschema.Schema.Validate].
func (b *Batch) AddValue(ctx context.Context, typ Hash, value any) (Hash, error) {
	if typ == b.Kinds().MetaHash() {
		return b.AddSchema(ctx, value)
	}
	schema, err := getSchema(ctx, b, typ)
	if err != nil {
		return "", err
	}
	if _, err := b.addSchemaNodes(schema); err != nil {
		return "", err
	}
	return b.AddDurable(ctx, typ, value)
}

// AddDurable is [Batch.AddValue] for a type whose schema is already durable, as everything is that a durable
// node references: a commit doesn't flush it again.
func (b *Batch) AddDurable(ctx context.Context, typ Hash, value any) (Hash, error) {
	schema, err := b.Compiled(ctx, typ)
	if err != nil {
		return "", err
	}
	payload, err := Encode(value)
	if err != nil {
		return "", err
	}
	v, err := Decode(payload)
	if err != nil {
		return "", err
	}
	problems, err := schema.Validate(ctx, v)
	if err != nil {
		return "", err
	}
	if len(problems) > 0 {
		return "", &SchemaError{Type: typ, Problems: problems}
	}
	return b.add(typ, payload)
}

// AddSchema checks and adds a JSON Schema. It returns a [*SchemaError] for a schema that a store doesn't
// accept, and the errors of [CheckTitle].
func (b *Batch) AddSchema(ctx context.Context, schema any) (Hash, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	payload, err := Encode(schema)
	if err != nil {
		return "", fmt.Errorf("schema: %w", err)
	}
	if _, err := compile(b.Kinds().MetaHash(), payload); err != nil {
		return "", err
	}
	meta := b.Kinds().MetaHash()
	n := Node{Hash: b.Algorithm().Sum(meta, payload), Type: meta, Payload: payload}
	if err := CheckTitle(b.Kinds(), n, false); err != nil {
		return "", err
	}
	return b.addSchemaNodes(n)
}

// Put writes the added nodes. They become readable, but not durable. It returns the errors of [Store].Put.
func (b *Batch) Put(ctx context.Context) error {
	if err := b.store.Put(ctx, b.nodes(b.written)...); err != nil {
		return err
	}
	b.wrote()
	return nil
}

// Handover returns the added nodes that weren't put yet, for a caller that puts them itself while others are
// added. They must be in the store before they are read through the batch or committed.
func (b *Batch) Handover() []Node {
	nodes := b.nodes(b.written)
	b.wrote()
	return nodes
}

// wrote records that all added nodes are in the store, or are about to be.
func (b *Batch) wrote() {
	for _, h := range b.order[b.written:] {
		b.held += len(b.added[h].Payload)
	}
	if b.written = len(b.order); b.held > keepBytes {
		b.drop()
	}
}

// drop frees nodes that are in the store, except their hashes, and schemas, which come with each node. If a
// dropped node is added again, it is written again, which the store ignores.
func (b *Batch) drop() {
	for _, h := range b.order[b.dropped:b.written] {
		if b.added[h].Type != b.Kinds().MetaHash() {
			delete(b.added, h)
		}
	}
	b.dropped, b.held = b.written, 0
}

// Commit makes all nodes ever added to the batch durable, including those put earlier or already in the
// store. If they don't fit into memory, it writes them in the order in which they were added. It returns the
// errors of [Store].Commit; after an error, nothing durable may reference one of the nodes.
func (b *Batch) Commit(ctx context.Context) error {
	for from := 0; from < b.dropped; {
		nodes, next, err := b.load(ctx, from)
		if err != nil {
			return err
		}
		if err := b.store.Commit(ctx, nodes...); err != nil {
			return err
		}
		from = next
	}
	if err := b.store.Commit(ctx, b.nodes(b.dropped)...); err != nil {
		return err
	}
	b.written = len(b.order)
	return nil
}

// load reads dropped nodes, starting at index i, as many as fit in memory, and returns the next index.
func (b *Batch) load(ctx context.Context, i int) (nodes []Node, next int, err error) {
	for size := 0; i < b.dropped && size < keepBytes; i++ {
		n, err := b.store.Get(ctx, b.order[i])
		if _, redacted := AsRedacted(err); redacted {
			continue // a tombstone is durable, and stays
		}
		if err != nil {
			return nil, 0, err
		}
		nodes, size = append(nodes, n), size+len(n.Payload)
	}
	return nodes, i, nil
}

// Get reads from the batch, or else from the store.
func (b *Batch) Get(ctx context.Context, h Hash) (Node, error) {
	if n, ok := b.added[h]; ok {
		return n, ctx.Err()
	}
	return b.recall.Get(ctx, h)
}

// Algorithm implements [Reader].
func (b *Batch) Algorithm() Algorithm { return b.store.Algorithm() }

// Kinds implements [Reader].
func (b *Batch) Kinds() *Kinds { return b.store.Kinds() }

// nodes returns the nodes added from index i on.
func (b *Batch) nodes(i int) []Node {
	nodes := make([]Node, 0, len(b.order)-i)
	for _, h := range b.order[i:] {
		nodes = append(nodes, b.added[h])
	}
	return nodes
}

func (b *Batch) add(typ Hash, payload []byte) (Hash, error) {
	return b.addNode(Node{Hash: b.Algorithm().Sum(typ, payload), Type: typ, Payload: payload})
}

// addNode adds a validated node once.
func (b *Batch) addNode(n Node) (Hash, error) {
	if old, ok := b.added[n.Hash]; ok {
		if !old.Equal(n) {
			return "", &CollisionError{Hash: n.Hash}
		}
		return n.Hash, nil
	}
	n.Timestamp = b.now().UnixMilli()
	b.added[n.Hash] = n
	b.order = append(b.order, n.Hash)
	return n.Hash, nil
}

// addSchemaNodes adds the node of a schema after the meta-schema's, so that a type is always written before
// its nodes.
func (b *Batch) addSchemaNodes(schema Node) (Hash, error) {
	if _, err := b.addNode(b.Kinds().Meta()); err != nil {
		return "", err
	}
	return b.addNode(schema)
}

// Compiled returns the compiled schema of a type in the store or the batch. It returns the errors of
// [Schema], and a [*SchemaError] for a schema that a store doesn't accept.
func (b *Batch) Compiled(ctx context.Context, typ Hash) (*jsonschema.Schema, error) {
	return b.verifier.schema(ctx, typ)
}
