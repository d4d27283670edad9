package jsonschema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// The work for a value is bounded by its cost, not by the number of checks: by the bytes of names and texts,
// the size of a pattern, and unreported failures.
func TestWeights(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	many := func(n int, v any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = v
		}
		return list
	}
	named := func(n, length int) object {
		all := object{}
		for i := range n {
			all[fmt.Sprint(i)+strings.Repeat("x", length)] = 1.0
		}
		return all
	}
	patterns := object{}
	for i := range 40 {
		patterns[fmt.Sprintf("(x+x+)+y{%d}$", i+1)] = object{}
	}
	for name, c := range map[string]struct {
		schema, value any
		ok            bool
	}{
		"long names":       {schema: object{"patternProperties": patterns}, value: named(1000, 5000)},
		"nested contains":  {schema: object{"contains": object{"contains": object{"contains": object{"const": 2.0}}}}, value: many(100, many(300, many(300, 1.0)))},
		"many constants":   {schema: object{"items": object{"anyOf": many(100, object{"const": "x"})}}, value: many(20_000, "y")},
		"a large pattern":  {schema: object{"items": object{"not": object{"pattern": "(x{1,30}x{1,30}){1,15}y$"}}}, value: many(100, strings.Repeat("x", 1000))},
		"large ordinary":   {schema: object{"items": object{"type": "object", "properties": object{"a": object{"type": "string"}, "b": object{"enum": []any{"x", "y"}}}, "required": []any{"a"}}}, value: many(100_000, object{"a": "x", "b": "y"}), ok: true},
		"a long text":      {schema: object{"pattern": "^x+$"}, value: strings.Repeat("x", 1_000_000), ok: true},
		"ordinary numbers": {schema: object{"items": object{"type": "integer", "minimum": 0.0}}, value: many(300_000, 1.0), ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled, err := jsonschema.Compile(c.schema)
			require.NoError(t, err)
			_, err = compiled.Validate(t.Context(), c.value)
			var spent *jsonschema.BudgetError
			require.Equal(t, !c.ok, errors.As(err, &spent), "%v", err)
		})
	}
}

// Many values share a budget.
func TestSharedBudget(t *testing.T) {
	t.Parallel()
	list := make([]any, 50_000)
	for i := range list {
		list[i] = "y"
	}
	compiled, err := jsonschema.Compile(map[string]any{"contains": map[string]any{"const": "x"}})
	require.NoError(t, err)
	ctx := jsonschema.WithBudget(t.Context(), 1)
	for range 40 {
		if _, err = compiled.Validate(ctx, list); err != nil {
			break
		}
	}
	var spent *jsonschema.BudgetError
	require.ErrorAs(t, err, &spent)
	_, err = compiled.Validate(t.Context(), list)
	require.NoError(t, err)
}
