package transcript

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// Arguments are JSON, stored as such or, by the original, as a string.
func TestArguments(t *testing.T) {
	t.Parallel()
	for want, args := range map[string]any{
		`{"cmd":"ls"}`:          map[string]any{"cmd": "ls"},
		`{"cmd":"ls -l"}`:       `{"cmd":"ls -l"}`,
		`"ls"`:                  "ls",
		`{"a": "\u001b[2J\\n"}`: "{\"a\": \"\\u001b[2J\\\\n\"}",
		`null`:                  nil,
	} {
		require.Contains(t, ForPeople.TurnBlock(protocol.Turn{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{Name: "x", Args: args}}}), "— `"+want+"`")
	}
}
