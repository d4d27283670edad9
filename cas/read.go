package cas

import (
	"context"
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/protocol"
)

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
