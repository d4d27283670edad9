package react

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// instant is a model that answers at once: what is left is the loop's own time.
type instant struct{ left int }

func (m *instant) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	m.left--
	if m.left <= 0 {
		return llm.Response{Message: llm.Message{Role: protocol.TurnAssistant, Content: final}, Finish: llm.FinishStop}, nil
	}
	call := llm.ToolCall{ID: fmt.Sprint(m.left), Name: "list_dir", Args: fmt.Sprintf(`{"depth":%d}`, m.left)}
	return llm.Response{Message: llm.Message{Role: protocol.TurnAssistant, ToolCalls: []llm.ToolCall{call}}, Finish: llm.FinishCalls}, nil
}

// A turn costs the same at the end of a long run as at its beginning: compare
// the time per turn of the two.
func BenchmarkTurns(b *testing.B) {
	for _, turns := range []int{10, 200} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			w, err := tools.OpenWorkspace(b.TempDir())
			require.NoError(b, err)
			registry, err := tools.NewRegistry(tools.ListDir(w))
			require.NoError(b, err)
			sessions := Sessions{Dir: b.TempDir(), NewID: func() (string, error) { return "s", nil }}
			for b.Loop() {
				s, err := sessions.New(llm.User("task"))
				require.NoError(b, err)
				_, err = Loop{Model: &instant{left: turns}, Tools: registry, Turns: turns + 5, Accept: accept}.Run(b.Context(), s)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*turns), "µs/turn")
			require.NoError(b, w.Close())
		})
	}
}
