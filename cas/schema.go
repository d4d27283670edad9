package cas

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// Schema returns the JSON Schema of a type as a JSON value. Errors: those of
// Get; a [*CorruptError] if typ is not a schema node.
func Schema(ctx context.Context, r Reader, typ Hash) (any, error) {
	n, err := getSchema(ctx, r, typ)
	if err != nil {
		return nil, err
	}
	return n.Value()
}

// getSchema gets the node of a type.
func getSchema(ctx context.Context, r Reader, typ Hash) (Node, error) {
	n, err := r.Get(ctx, typ)
	if err != nil {
		return Node{}, fmt.Errorf("schema: %w", err)
	}
	if n.Type != r.Kinds().MetaHash() && n.Type != n.Hash {
		return Node{}, &CorruptError{Hash: typ, Reason: "it is used as a type but is not a schema"}
	}
	return n, nil
}

// compile checks the payload of a schema node and compiles it. Errors:
// [*SchemaError] against the meta-schema, whose hash is meta.
func compile(meta Hash, payload []byte) (*jsonschema.Schema, error) {
	schema, err := Decode(payload)
	if err != nil {
		return nil, err
	}
	compiled, err := jsonschema.Compile(schema)
	if invalid, ok := errors.AsType[*jsonschema.InvalidError](err); ok {
		return nil, &SchemaError{Type: meta, Problems: invalid.Problems}
	}
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return compiled, nil
}
