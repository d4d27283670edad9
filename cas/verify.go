package cas

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// Verify reads a node and checks its hash, that its type exists, and that it
// satisfies it. Errors: those of Get for the node or its schema, [*CorruptError]
// for a payload that is not canonical, [*SchemaError], those of
// [jsonschema.Schema.Validate].
func Verify(ctx context.Context, r Reader, h Hash) error {
	return NewVerifier(r).Verify(ctx, h)
}

// Verifier verifies many nodes and compiles each schema once. Not safe for
// concurrent use.
type Verifier struct {
	reader   Reader
	compiled map[Hash]*jsonschema.Schema
}

// NewVerifier returns a Verifier for the nodes of r.
func NewVerifier(r Reader) *Verifier {
	return &Verifier{reader: r, compiled: map[Hash]*jsonschema.Schema{}}
}

// Verify is [Verify].
func (v *Verifier) Verify(ctx context.Context, h Hash) error {
	n, err := v.reader.Get(ctx, h)
	if err != nil {
		return err
	}
	value, err := Decode(n.Payload)
	if err != nil {
		return &CorruptError{Hash: h, Reason: err.Error()}
	}
	return v.verifyValue(ctx, n, value)
}

// verifyValue checks the value of a node against its type.
func (v *Verifier) verifyValue(ctx context.Context, n Node, value any) error {
	if n.Type == v.reader.Kinds().MetaHash() || n.Type == n.Hash {
		return v.verifySchema(n, value)
	}
	schema, err := v.schema(ctx, n.Type)
	if err != nil {
		return fmt.Errorf("verify %s: %w", n.Hash, err)
	}
	problems, err := schema.Validate(ctx, value)
	if err != nil {
		return fmt.Errorf("verify %s: %w", n.Hash, err)
	}
	if len(problems) > 0 {
		return fmt.Errorf("verify %s: %w", n.Hash, &SchemaError{Type: n.Type, Problems: problems})
	}
	return nil
}

func (v *Verifier) verifySchema(n Node, schema any) error {
	if problems := jsonschema.Check(schema); len(problems) > 0 {
		return fmt.Errorf("verify %s: %w", n.Hash, &SchemaError{Type: n.Type, Problems: problems})
	}
	return nil
}

func (v *Verifier) schema(ctx context.Context, typ Hash) (*jsonschema.Schema, error) {
	if s, ok := v.compiled[typ]; ok {
		return s, nil
	}
	n, err := getSchema(ctx, v.reader, typ)
	if err != nil {
		return nil, err
	}
	s, err := compile(n.Type, n.Payload)
	if len(v.compiled) == maxSchemas {
		clear(v.compiled)
	}
	if err == nil {
		v.compiled[typ] = s
	}
	return s, err
}
