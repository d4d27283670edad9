package moderator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestKnownCommand(t *testing.T) {
	t.Parallel()
	start := protocol.Start{Prompt: "task", Inputs: map[string]any{"test": "npm test"}}
	require.Equal(t, []string{"sh", "-c", "npm test", "task", "{{{place}}}", "{{{$inputs.gone}}} npm", "{{"},
		KnownCommand([]string{"sh", "-c", "{{{$inputs.test}}}", "{{{$prompt}}}", "{{{place}}}", "{{{$inputs.gone}}} npm", "{{"}, start))
}
