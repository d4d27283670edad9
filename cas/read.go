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

// Expand returns a node's payload with every ref replaced by its target, down to depth levels (<0: all). A
// cycle keeps its hash. A target referenced twice is shared rather than copied, so don't modify the result. A
// redacted node is replaced by [RedactedError.Value]. It returns the errors of Get and [Refs], for any of the
// nodes.
func Expand(ctx context.Context, r Reader, h Hash, depth int) (any, error) {
	e := expander{finder: newRefFinder(r), open: map[Hash]bool{}, done: map[place]any{}}
	return e.expand(ctx, h, depth)
}

// place is a node and its remaining depth.
type place struct {
	hash  Hash
	depth int
}

type expander struct {
	finder *refFinder
	open   map[Hash]bool // being expanded: another occurrence is a cycle
	done   map[place]any
}

func (e *expander) expand(ctx context.Context, h Hash, depth int) (any, error) {
	at := place{h, depth}
	if v, ok := e.done[at]; ok {
		return v, nil
	}
	n, err := e.finder.reader.Get(ctx, h)
	if redacted, ok := AsRedacted(err); ok {
		return redacted.Value(), nil
	}
	if err != nil {
		return nil, err
	}
	if depth == 0 {
		return n.Value()
	}
	e.open[h] = true
	defer delete(e.open, h)
	v, err := e.finder.replace(ctx, n, func(ref Hash) (any, error) {
		if e.open[ref] {
			return string(ref), nil
		}
		return e.expand(ctx, ref, max(depth, 0)-1)
	})
	if err == nil {
		e.done[at] = v
	}
	return v, err
}

// Inspector inspects many nodes: it returns their refs and validates them against their types. It reads and
// compiles each schema once. It is not safe for concurrent use.
type Inspector struct {
	verifier *Verifier
	finder   *refFinder
}

// NewInspector returns an Inspector for the nodes of r.
func NewInspector(r Reader) *Inspector {
	return &Inspector{verifier: NewVerifier(r), finder: newRefFinder(r)}
}

// Refs is like the function [Refs].
func (i *Inspector) Refs(ctx context.Context, n Node) ([]Hash, error) { return i.finder.refs(ctx, n) }

// Inspect checks a node returned by Get, as [Verify] does, and returns its refs. For a node that doesn't
// match its type it returns both the refs and the error, otherwise errors only.
func (i *Inspector) Inspect(ctx context.Context, n Node) ([]Hash, error) {
	value, err := Decode(n.Payload)
	if err != nil {
		return nil, &CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	refs, err := i.finder.refsIn(ctx, n, value)
	if err != nil {
		return nil, err
	}
	return refs, i.verifier.verifyValue(ctx, n, value)
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
