package jsonschema

import "context"

// MaxValues is the bound of a schema.
const MaxValues = maxValues

// Look is what the quick check alone says of a value: "fits", "fails" or "unsure".
func (s *Schema) Look(value any) string {
	return map[answer]string{fits: "fits", fails: "fails", unsure: "unsure"}[s.look(value)]
}

// Ask passes the quick check by.
func (s *Schema) Ask(ctx context.Context, value any) ([]Problem, error) { return s.ask(ctx, value) }
