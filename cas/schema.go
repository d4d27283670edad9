package cas

import (
	"context"
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

// compile checks the payload of a schema node and compiles it. Problems are
// reported against the meta-schema's hash.
func compile(meta Hash, payload []byte) (*jsonschema.Schema, error) {
	schema, err := Decode(payload)
	if err != nil {
		return nil, err
	}
	if problems := jsonschema.Check(schema); len(problems) > 0 {
		return nil, &SchemaError{Type: meta, Problems: problems}
	}
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		return nil, &SchemaError{Type: meta, Problems: []jsonschema.Problem{{Message: err.Error()}}}
	}
	return compiled, nil
}
