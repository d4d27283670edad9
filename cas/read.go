package cas

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/protocol"
)

// Read gets a node of one of our kinds: Read[protocol.Step](ctx, store, h).
// Errors: those of Get, [*TypeError] if it is of another type, [*CorruptError]
// if its content is not what its kind says.
func Read[P protocol.Payload](ctx context.Context, r Reader, h Hash) (P, error) {
	var p P
	n, err := r.Get(ctx, h)
	if err != nil {
		return p, err
	}
	return As[P](r, n)
}

// As decodes a node that has been read as one of our kinds. Errors: those of
// [Read] without those of Get.
func As[P protocol.Payload](r Reader, n Node) (P, error) {
	var p, zero P
	if kind := p.Kind(); n.Type != r.Kinds().Hash(kind) {
		return zero, &TypeError{Hash: n.Hash, Got: n.Type, Want: kind}
	}
	if err := decodeInto(n.Payload, &p); err != nil {
		return zero, &CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	if err := p.Validate(); err != nil {
		return zero, &CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("it is not a %s: %v", p.Kind(), err)}
	}
	return p, nil
}
