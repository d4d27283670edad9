package cas

import (
	"context"
	"fmt"

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
		return zero, &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: fmt.Sprintf("workflow %s was made by a newer uwf: upgrade", n.Hash)}
	}
	p, err := decodeAs[P](n)
	if err == nil && p.Version() > version {
		// The refs among them are none to the collector.
		return zero, &CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("it has fields that a %s does not have", protocol.Type{Kind: kind, Version: version})}
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
