package react

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// narrow is a model with a window. It looks at one long thing after the other
// and refuses a conversation that it cannot read.
type narrow struct {
	t       *testing.T
	window  int // tokens
	looks   int
	counts  bool // tokens are reported
	asked   [][]llm.Message
	refused int
}

func (m *narrow) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	size := 0
	for i, msg := range req.Messages {
		size += sizeOf(msg)
		if msg.Role == protocol.TurnTool {
			require.Contains(m.t, []protocol.TurnRole{protocol.TurnAssistant, protocol.TurnTool}, req.Messages[i-1].Role)
		}
	}
	if size/charsPerToken > m.window {
		m.refused++
		return llm.Response{}, &llm.Error{Kind: llm.KindContext, Message: "too long"}
	}
	m.asked = append(m.asked, append([]llm.Message(nil), req.Messages...))
	resp := llm.Response{Message: llm.Message{Role: protocol.TurnAssistant, Content: final}, Finish: llm.FinishStop}
	if m.looks--; m.looks >= 0 {
		resp.Message.Content = strings.Repeat("I look. ", 20)
		resp.Message.ToolCalls = []llm.ToolCall{{ID: fmt.Sprint("id", m.looks), Name: "look", Args: fmt.Sprintf(`{"at":%d}`, m.looks)}}
	}
	if m.counts {
		resp.Usage = protocol.Usage{Turns: 1, InputTokens: int64(size / charsPerToken), OutputTokens: 10}
	}
	return resp, nil
}

func look(t *testing.T, size int) *tools.Registry {
	t.Helper()
	r, err := tools.NewRegistry(tools.New(tools.Spec{Name: "look", Parameters: map[string]any{
		"type": "object", "properties": map[string]any{"at": map[string]any{"type": "integer"}},
	}}, func(_ context.Context, a struct{ At int }) (string, error) {
		return fmt.Sprintf("seen %d %s end", a.At, strings.Repeat("é", size/2)), nil
	}))
	require.NoError(t, err)
	return r
}

// A long run stays within the window: old results go first, the model is told,
// and another process finds the same conversation.
func TestConversationStaysWithinTheWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts        bool
		told, looks   int
		wantRefusals  bool
		wantRemovedAt string
	}{
		"tokens are counted":    {true, 8000, 60, false, "results of"},
		"tokens are estimated":  {false, 8000, 60, false, "results of"},
		"the window is unknown": {true, 0, 60, true, ""},
		"replies go too":        {true, 8000, 400, false, "old messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &narrow{t: t, window: 8000, looks: c.looks, counts: c.counts}
			sessions := Sessions{Dir: t.TempDir(), NewID: func() (string, error) { return "s", nil }}
			s, err := sessions.New(llm.System("system"), llm.User("the task"))
			require.NoError(t, err)
			var rooms []string
			loop := Loop{
				Model: m, Tools: look(t, 2500), Turns: c.looks + 5, Window: c.told, Accept: accept,
				Asked: func(_ context.Context, a Asked) error {
					if a.Room != "" {
						rooms = append(rooms, a.Room)
					}
					return nil
				},
			}
			answer, err := loop.Run(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, Done, answer.Outcome)
			require.Equal(t, c.wantRefusals, m.refused > 0)
			require.NotEmpty(t, rooms)
			require.Less(t, len(rooms), c.looks/3, "room is made seldom, for the sake of prompt caches")

			last := m.asked[len(m.asked)-1]
			text := ""
			for _, msg := range last {
				text += msg.Content + "\n"
			}
			require.Equal(t, "the task", last[1].Content, "the task is never left out")
			require.Contains(t, text, "removed to make room")
			require.LessOrEqual(t, strings.Count(text, cutNote), 1)
			if c.wantRemovedAt != "" {
				require.Contains(t, fmt.Sprint(rooms), c.wantRemovedAt)
				require.Contains(t, text, "[To make room, the results of")
			}
			again, err := sessions.Open(s.ID)
			require.NoError(t, err)
			require.Equal(t, s.Messages, again.Messages)
		})
	}
}

// A single result cannot push everything else out.
func TestResultIsCutForASmallWindow(t *testing.T) {
	t.Parallel()
	m := &narrow{t: t, window: 2000, looks: 1}
	s := InMemory("s", llm.User("task"))
	_, err := Loop{Model: m, Tools: look(t, 20000), Window: 2000, Accept: accept}.Run(t.Context(), s)
	require.NoError(t, err)
	require.Zero(t, m.refused)
	result := s.Messages[2].Content
	require.Less(t, len(result), 1200)
	require.Contains(t, result, "bytes left out: the model's window is small")
	require.True(t, strings.HasPrefix(result, "seen 0") && strings.HasSuffix(result, "end"), result)
}

func TestTaskThatDoesNotFitIsAnError(t *testing.T) {
	t.Parallel()
	m := &narrow{t: t, window: 100}
	_, err := Loop{Model: m, Accept: accept}.Run(t.Context(), InMemory("s", llm.User(strings.Repeat("x", 4000))))
	require.ErrorContains(t, err, "too long")
	require.Equal(t, 1, m.refused)
}
