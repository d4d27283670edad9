package llm

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
)

// Any conversation is put into the form of the strictest endpoints.
func TestRequestsHaveTheStrictForm(t *testing.T) {
	t.Parallel()
	endpoint := config.Endpoint{BaseURL: "http://example.org/v1", Model: "m", Stream: true}
	tools := []Tool{{Name: "f", Parameters: map[string]any{"type": "object"}}}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		q := quirks{bridge: random.IntN(2) == 0, flatten: random.IntN(3) == 0, noExtra: random.IntN(4) == 0, emptyReasoning: random.IntN(4) == 0, noMarks: random.IntN(2) == 0, noToolMarks: random.IntN(2) == 0}
		c := New(endpoint, Options{})
		messages := []Message{System("s"), User("u")}
		for range 12 {
			for range random.IntN(3) {
				messages = append(messages, anyMessage(random, c.Source()))
			}
			if random.IntN(10) == 0 {
				messages = append([]Message{System("s")}, messages[len(messages)/2:]...) // messages were removed
			}
			req := Request{Messages: messages, Tools: tools, NoCalls: random.IntN(5) == 0}
			b, err := c.encode(req, q)
			require.NoError(t, err)
			requireStrictForm(t, b)
		}
	}
}

// anyMessage returns a random message from any source.
func anyMessage(random *rand.Rand, own string) Message {
	text := []string{"", "text", "<b> \"quoted\" ✓"}[random.IntN(3)]
	switch random.IntN(4) {
	case 0:
		return User(text)
	case 1:
		return ToolResult(fmt.Sprint("c", random.IntN(6)), text)
	}
	m := Message{Role: protocol.TurnAssistant, Content: text, Source: []string{own, "another"}[random.IntN(2)]}
	for range random.IntN(3) {
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: fmt.Sprint("c", random.IntN(6)), Name: "f", Args: []string{"{}", "cut {"}[random.IntN(2)]})
	}
	if random.IntN(3) == 0 {
		m.Extra = map[string]json.RawMessage{"reasoning": json.RawMessage(`"hm"`)}
	}
	return m
}

// requireStrictForm checks the requirements of the strictest endpoints: every call is answered right after it
// and in order, nothing else is, and no two user messages are adjacent.
func requireStrictForm(t *testing.T, body []byte) {
	t.Helper()
	var r struct {
		Messages []struct {
			Role      string
			ToolCalls []struct{ ID string } `json:"tool_calls"`
		}
	}
	require.NoError(t, json.Unmarshal(body, &r))
	open, before := 0, ""
	for _, m := range r.Messages {
		if m.Role == "tool" {
			open--
		} else {
			require.Zero(t, open, "%s", body)
			open = len(m.ToolCalls)
		}
		require.GreaterOrEqual(t, open, 0, "%s", body)
		require.False(t, m.Role == "user" && before == "user", "%s", body)
		before = m.Role
	}
	require.Zero(t, open)
}
