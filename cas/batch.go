package cas

import (
	"context"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Batch collects the nodes of one commit. What was added can be read through it
// before it is written, and what is in the store is read once ([Recalling]). Payloads are validated
// when they are added, and the
// schema of each is part of the batch, so that nothing durable has a type that
// is not ([Batch.AddDurable] knows that it is).
//
// A Batch is not safe for concurrent use.
type Batch struct {
	store    Store
	recall   Reader // of the store
	now      func() time.Time
	added    map[Hash]Node // but those that were dropped
	order    []Hash        // of all that was ever added
	written  int           // how many of order are in the store
	dropped  int           // how many of order are only there
	held     int           // bytes of payloads between these two
	compiled map[Hash]*jsonschema.Schema
}

// keepBytes is how much of what is in the store a batch keeps in memory, too: a
// step may have gigabytes of turns.
const keepBytes = 8 << 20

// NewBatch returns an empty batch on a store; now gives the timestamps.
func NewBatch(s Store, now func() time.Time) *Batch {
	return &Batch{store: s, recall: Recalling(s), now: now, added: map[Hash]Node{},
		compiled: map[Hash]*jsonschema.Schema{}}
}

// Add adds a payload of one of our kinds, and its schema. Errors: those of the
// payload's Validate, and of [Encode].
func (b *Batch) Add(ctx context.Context, p protocol.Payload) (Hash, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := p.Validate(); err != nil {
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

// AddValue adds a payload of any type that the store or the batch has a schema
// for. Errors: [*SchemaError] if the value does not satisfy the schema; those of
// [Schema] if there is none; those of [jsonschema.Schema.Validate].
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

// AddDurable is [Batch.AddValue] for a type whose schema is durable already, as
// all is that a durable node leads to: a commit does not flush it again.
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

// AddSchema checks and adds a JSON Schema. Errors: [*SchemaError] if it is not
// one that a store accepts; those of [CheckTitle].
func (b *Batch) AddSchema(ctx context.Context, schema any) (Hash, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	payload, err := Encode(schema)
	if err != nil {
		return "", fmt.Errorf("schema: %w", err)
	}
	compiled, err := compile(b.Kinds().MetaHash(), payload)
	if err != nil {
		return "", err
	}
	meta := b.Kinds().MetaHash()
	n := Node{Hash: b.Algorithm().Sum(meta, payload), Type: meta, Payload: payload}
	if err := CheckTitle(b.Kinds(), n); err != nil {
		return "", err
	}
	h, err := b.addSchemaNodes(n)
	if err != nil {
		return "", err
	}
	b.compiled[h] = compiled
	return h, nil
}

// Put writes what was added, readable but not durable. Errors: those of
// [Store].Put.
func (b *Batch) Put(ctx context.Context) error {
	if err := b.store.Put(ctx, b.nodes(b.written)...); err != nil {
		return err
	}
	b.wrote()
	return nil
}

// Handover returns what was added and not put yet, for a caller that puts it
// itself while more is added. It must be in the store before it is read through
// the batch or committed.
func (b *Batch) Handover() []Node {
	nodes := b.nodes(b.written)
	b.wrote()
	return nodes
}

// wrote notes that all that was added is in the store, or about to be.
func (b *Batch) wrote() {
	for _, h := range b.order[b.written:] {
		b.held += len(b.added[h].Payload)
	}
	if b.written = len(b.order); b.held > keepBytes {
		b.drop()
	}
}

// drop forgets nodes that are in the store, all but their hashes, and schemas, which
// come with each node. One that is added again is written again, which the store
// takes for what it is.
func (b *Batch) drop() {
	for _, h := range b.order[b.dropped:b.written] {
		if b.added[h].Type != b.Kinds().MetaHash() {
			delete(b.added, h)
		}
	}
	b.dropped, b.held = b.written, 0
}

// Commit makes all that was ever added to the batch durable, what was put or
// was in the store before included; in the order in which it was added, if that is
// more than fits into memory. Errors: those of [Store].Commit; then nothing may be
// made durable that names one of the nodes.
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

// load reads nodes that were dropped, from the i-th on, as many as may be in
// memory, and returns which is next.
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

// Get reads from the batch, else from the store.
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

// nodes are those added from the i-th on.
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

// addNode adds a node that has been validated, once.
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

// addSchemaNodes adds the node of a schema after the meta-schema's, so that a
// type is always written before what has it.
func (b *Batch) addSchemaNodes(schema Node) (Hash, error) {
	if _, err := b.addNode(b.Kinds().Meta()); err != nil {
		return "", err
	}
	return b.addNode(schema)
}

// Compiled is the compiled schema of a type that the store or the batch has.
// Errors: those of [Schema]; [*SchemaError] if it is not one that a store accepts.
func (b *Batch) Compiled(ctx context.Context, typ Hash) (*jsonschema.Schema, error) {
	if s, ok := b.compiled[typ]; ok {
		return s, ctx.Err()
	}
	n, err := getSchema(ctx, b, typ)
	if err != nil {
		return nil, err
	}
	s, err := compile(b.Kinds().MetaHash(), n.Payload)
	if err != nil {
		return nil, err
	}
	b.compiled[typ] = s
	return s, nil
}
