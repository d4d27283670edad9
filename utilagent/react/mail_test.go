package react

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// A message from a person while the agent works is part of the next request, as a turn, and once.
func TestUserMessageIsDelivered(t *testing.T) {
	t.Parallel()
	m := script(t, reply("tool_calls", "Looking.", "a", "echo", `{"text":"1"}`), reply("tool_calls", "", "b", "echo", `{"text":"2"}`), say(final))
	b := newBench(t, m)
	letters := [][]string{nil, {"Use tabs.", "Be quick."}}
	b.Loop.Mail = func(ctx context.Context, deliver func(context.Context, string) error) error {
		if len(letters) == 0 {
			return nil
		}
		for _, text := range letters[0] {
			require.NoError(t, deliver(ctx, text))
		}
		letters = letters[1:]
		return nil
	}
	b.mustRun()
	second := m.requests()[1].Messages
	require.Equal(t, "user", second[len(second)-1].Role)
	require.Equal(t, "Use tabs.\n\nBe quick.", second[len(second)-1].Content)
	var said []string
	for _, turn := range b.turns {
		if turn.Role == protocol.TurnUser {
			said = append(said, turn.Content)
		}
	}
	require.Equal(t, []string{"Use tabs.", "Be quick."}, said)
}
