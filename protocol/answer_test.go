package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestAnswerSchema(t *testing.T) {
	t.Parallel()
	require.True(t, protocol.IsAnswerSchema(protocol.AnswerSchema()))
	text, err := json.Marshal(protocol.AnswerSchema())
	require.NoError(t, err)
	var read any
	require.NoError(t, json.Unmarshal(text, &read))
	read.(map[string]any)["title"] = "fix.developer"
	require.True(t, protocol.IsAnswerSchema(read), "also as the store gives it back")
	for _, other := range []any{nil, true, map[string]any{}, map[string]any{"type": "object", "additionalProperties": false,
		"required": []any{"answer"}, "properties": map[string]any{"answer": map[string]any{"type": "string", "minLength": 1}}}} {
		require.False(t, protocol.IsAnswerSchema(other))
	}
}
