package inputs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/protocol"
)

func TestFill(t *testing.T) {
	t.Parallel()
	declared := map[string]inputs.Declared{
		"issue":  {Schema: map[string]any{"type": "integer"}, Description: "Its number"},
		"branch": {Schema: map[string]any{"type": "string"}, Default: "main"},
		"quick":  {Schema: map[string]any{"type": "boolean"}, Default: false},
	}
	got, err := inputs.Fill(t.Context(), declared, map[string]any{"issue": int64(1)})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"issue": int64(1), "branch": "main", "quick": false}, got)
	got, err = inputs.Fill(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Nil(t, got, "a start without inputs stays what it was")

	for want, given := range map[string]map[string]any{
		"usage: issue: required (Its number)":    {},
		"usage: brunch: unknown":                 {"issue": int64(1), "brunch": "x"},
		"invalid: issue: must be a whole number": {"issue": "x"},
		"invalid: inputs too large: 100037":      {"issue": int64(1), "branch": strings.Repeat("x", 100_000)},
	} {
		_, err := inputs.Fill(t.Context(), declared, given)
		code, text, _ := strings.Cut(want, ": ")
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.Code(code)}, want)
		require.ErrorContains(t, err, text)
	}
}
