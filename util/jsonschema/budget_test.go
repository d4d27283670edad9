package jsonschema_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// expensive returns a schema, and a value of similar size, that would take hours.
func expensive(parts, texts int) (schema, value any) {
	all := make([]any, parts)
	for i := range all {
		all[i] = map[string]any{"not": map[string]any{"pattern": "(x+x+)+y$"}}
	}
	values := make([]any, texts)
	for i := range values {
		values[i] = strings.Repeat("x", 1000)
	}
	return map[string]any{"items": map[string]any{"allOf": all}}, values
}

func TestBudget(t *testing.T) {
	t.Parallel()
	schema, value := expensive(1000, 100)
	compiled, err := jsonschema.Compile(schema)
	require.NoError(t, err)
	_, err = compiled.Validate(t.Context(), value)
	var spent *jsonschema.BudgetError
	require.ErrorAs(t, err, &spent)

	// The next value has its own budget.
	_, small := expensive(1, 1)
	problems, err := compiled.Validate(t.Context(), small)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// A pattern is charged only for the texts it applies to: a long task next to a short hash isn't an error.
func TestBudgetOfLongTexts(t *testing.T) {
	t.Parallel()
	dear := map[string]any{"pattern": "^(sha1:[0-9a-f]{40}|sha256:[0-9a-f]{64})$"}
	long := strings.Repeat("x", 8<<20)
	object := func(name string, value any) map[string]any { return map[string]any{name: value} }
	for _, c := range []struct {
		schema, value any
		within        bool
	}{
		{object("properties", object("hash", dear)), object("text", long), true},
		{object("properties", object("hash", object("items", dear))), object("hash", long), true},
		{object("properties", object("in", object("properties", object("hash", dear)))), map[string]any{"in": object("text", long), "hash": long}, true},
		{object("properties", object("hash", dear)), object("hash", long), false},
		{object("additionalProperties", dear), object("text", long), false},
		{object("patternProperties", object("^x", dear)), object("x", long), false},
		{object("contains", dear), []any{long}, false},
		{object("oneOf", []any{object("properties", object("b", dear))}), map[string]any{"b": long}, false},
		{object("if", object("anyOf", []any{object("items", object("not", dear))})), []any{long}, false},
	} {
		compiled, err := jsonschema.Compile(c.schema)
		require.NoError(t, err)
		_, err = compiled.Validate(t.Context(), c.value)
		if c.within {
			require.NoError(t, err, c.schema)
			continue
		}
		var spent *jsonschema.BudgetError
		require.ErrorAs(t, err, &spent, c.schema)
	}
}

// Validation stops when its context is done, even within one value.
func TestValidateEndsWithTheContext(t *testing.T) {
	t.Parallel()
	schema, value := expensive(2000, 40)
	compiled, err := jsonschema.Compile(schema)
	require.NoError(t, err)
	ctx := &endsAfter{Context: t.Context(), looks: 3}
	_, err = compiled.Validate(ctx, value)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 0, ctx.looks)
}

// endsAfter is a context that is canceled after some checks.
type endsAfter struct {
	context.Context
	looks int
}

func (e *endsAfter) Err() error {
	if e.looks == 0 {
		return context.Canceled
	}
	e.looks--
	return nil
}
