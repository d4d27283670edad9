package tools

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

func TestSchemaOfAStruct(t *testing.T) {
	t.Parallel()
	type place struct {
		X, Y float64
	}
	type in struct {
		Limit int               `json:"limit,omitempty"`
		Name  string            `json:"name" doc:"Who"`
		Kind  string            `json:"kind" enum:"a,b"`
		On    *bool             `json:"on"`
		Tags  []string          `json:"tags,omitempty"`
		Where []place           `json:"where,omitempty"`
		Env   map[string]string `json:"env,omitzero"`
		Any   any               `json:"any,omitempty"`
		Skip  chan int          `json:"-"`
	}
	got, err := json.Marshal(Func("f", "d", func(context.Context, in) (string, error) { return "", nil }).Spec().Parameters)
	require.NoError(t, err)
	require.JSONEq(t, `{"type": "object", "additionalProperties": false, "required": ["name", "kind"], "properties": {
		"limit": {"type": "integer"}, "name": {"type": "string", "description": "Who"}, "kind": {"type": "string", "enum": ["a", "b"]},
		"on": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}}, "any": {},
		"where": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["X", "Y"],
			"properties": {"X": {"type": "number"}, "Y": {"type": "number"}}}},
		"env": {"type": "object", "additionalProperties": {"type": "string"}}}}`, string(got))
}

// The function receives the arguments that the schema describes.
func TestArgumentsArriveInTheStruct(t *testing.T) {
	t.Parallel()
	type in struct {
		N     int               `json:"n"`
		Words []string          `json:"words"`
		Env   map[string]string `json:"env,omitempty"`
		Mode  string            `json:"mode,omitempty" enum:"fast,slow"`
	}
	var got in
	r, err := NewRegistry(Func("f", "d", func(_ context.Context, a in) (string, error) { got = a; return "done", nil }))
	require.NoError(t, err)
	require.Equal(t, "done", call(t, r, "f", args{"n": "7", "words": `["a"]`, "env": args{"A": "1"}, "mode": "FAST"}))
	require.Equal(t, in{7, []string{"a"}, map[string]string{"A": "1"}, "fast"}, got)
	prosetest.Text(t, call(t, r, "f", args{"n": 1.0, "words": []any{}, "mode": "x"}))
}

func TestTypesThatCannotBeDescribedAreRefused(t *testing.T) {
	t.Parallel()
	type node struct {
		Next *node `json:"next"`
	}
	for name, tool := range map[string]Tool{
		"no struct":    Func("f", "d", func(context.Context, string) (string, error) { return "", nil }),
		"a function":   Func("f", "d", func(context.Context, struct{ F func() }) (string, error) { return "", nil }),
		"holds itself": Func("f", "d", func(context.Context, node) (string, error) { return "", nil }),
		"a time":       Func("f", "d", func(context.Context, struct{ At time.Time }) (string, error) { return "", nil }),
		"embedded":     Func("f", "d", func(context.Context, struct{ node }) (string, error) { return "", nil }),
		"keys":         Func("f", "d", func(context.Context, struct{ M map[int]int }) (string, error) { return "", nil }),
	} {
		_, err := NewRegistry(tool)
		require.ErrorIs(t, err, errType, name)
	}
	_, err := NewRegistry(Func("f", "d", func(context.Context, struct{}) (string, error) { return "", nil }))
	require.NoError(t, err, "a tool may have no arguments")
}
