package jsonschema

import "context"

// Quick is what the quick check alone says of a value.
func (s *Schema) Quick(value any) bool { return s.quick(value, 0) }

// MaxValues is the bound of a schema.
const MaxValues = maxValues

// Ask passes the quick check by.
func (s *Schema) Ask(ctx context.Context, value any) ([]Problem, error) { return s.ask(ctx, value) }
