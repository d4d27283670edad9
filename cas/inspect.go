package cas

import (
	"context"
)

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
