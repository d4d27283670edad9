package cas

import (
	"context"
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/protocol"
)

// Read gets a node of one of our kinds: Read[protocol.Start](ctx, store, h).
// Errors: those of Get, and of [As].
func Read[P protocol.Payload](ctx context.Context, r Reader, h Hash) (P, error) {
	n, err := r.Get(ctx, h)
	if err != nil {
		var zero P
		return zero, err
	}
	return As[P](ctx, r, n)
}

// As decodes a node that has been read as one of our kinds, of whatever version:
// fields that this program does not know are ignored. In a store with the
// original's hash function it also understands the original's nodes, but for
// steps, whose place only the chain tells (package thread). Errors: [*TypeError]
// if the node is of another kind, [*CorruptError] if its content is not what its
// kind says, a [*protocol.Error] of code newer for a workflow of a newer version,
// those of [Schema] for a type that is neither ours nor there.
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
		// What it asks for would be left out.
		return zero, &protocol.Error{Code: protocol.CodeUnsupportedVersion,
			Message: fmt.Sprintf("workflow %s was made by a newer uwf: upgrade", n.Hash)}
	}
	p, err := decodeAs[P](n)
	if err == nil && p.Version() > version {
		// The refs among them are none to the collector.
		return zero, &CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("it has fields that a %s does not have",
			protocol.Type{Kind: kind, Version: version})}
	}
	return p, err
}

// decodeAs decodes a node whose type is known.
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

// check holds a payload against what its kind says.
func check(n Node, p protocol.Payload) error {
	if err := p.Validate(); err != nil {
		return &CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("it is not a %s: %v", p.Kind(), err)}
	}
	return nil
}

// Expand is a node's payload with every ref replaced by what it refers to, down
// to depth levels (<0: all). A cycle keeps its hash. What is referred to twice
// is one value, not a copy: do not change the result. What was redacted says so
// ([RedactedError.Value]). Errors: those of Get and [Refs], for any of the nodes.
func Expand(ctx context.Context, r Reader, h Hash, depth int) (any, error) {
	e := expander{finder: newRefFinder(r), open: map[Hash]bool{}, done: map[place]any{}}
	return e.expand(ctx, h, depth)
}

// place is a node at a remaining depth.
type place struct {
	hash  Hash
	depth int
}

type expander struct {
	finder *refFinder
	open   map[Hash]bool // being expanded: meeting one again is a cycle
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

// Inspector looks into many nodes: what they refer to, and whether they satisfy
// their types. It reads and compiles each schema once. Not safe for concurrent
// use.
type Inspector struct {
	verifier *Verifier
	finder   *refFinder
}

// NewInspector returns an Inspector for the nodes of r.
func NewInspector(r Reader) *Inspector {
	return &Inspector{verifier: NewVerifier(r), finder: newRefFinder(r)}
}

// Refs is [Refs].
func (i *Inspector) Refs(ctx context.Context, n Node) ([]Hash, error) { return i.finder.refs(ctx, n) }

// Inspect checks a node that a Get has returned, as [Verify] does, and returns
// what it refers to. Of a node that does not satisfy its type it returns the
// refs and the error; otherwise, errors come alone.
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

// recallBytes bounds what a [Recalling] keeps: the nodes that several parts of one
// step need are few and small.
const recallBytes = 1 << 20

// Recalling returns a reader that reads a node once, as long as there are few of
// them. It is for one step: what becomes of a node that was read, such as damage or
// a redaction, it does not see. Safe for concurrent use if r is.
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
	const entry = 256 // roughly, besides the payload
	r.mu.Lock()
	defer r.mu.Unlock()
	if size := len(n.Payload) + entry; size <= r.room {
		r.nodes[h], r.room = n, r.room-size
	}
	return n, nil
}
