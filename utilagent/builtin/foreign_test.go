//go:build endpoint

package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/internal/foreigntest"
)

// Each of the three agents makes a complete step on a third-party endpoint, with and without streaming.
func TestForeignAgents(t *testing.T) {
	url := foreigntest.Start(t, "testdata/foreign.json")
	for _, stream := range []bool{true, false} {
		run := func(t *testing.T, o agentkit.Options, task string) (*agentkittest.Thread, *agentkittest.Outcome) {
			th := agentkittest.New(t, agentkittest.Scenario{Task: task, Config: fmt.Sprintf(`
providers: { foreign: { baseUrl: %q, apiKey: sk-fake-key-000 } }
models: { main: { provider: foreign, name: gpt-4o, stream: %v } }
defaultModel: main
`, url, stream)})
			return th, th.Run(o).Succeeded()
		}
		t.Run(fmt.Sprintf("builtin, stream %v", stream), func(t *testing.T) {
			th, got := run(t, Options(), "Greet in a file")
			b, err := os.ReadFile(filepath.Join(th.Cwd, "hello.txt"))
			require.NoError(t, err)
			require.Equal(t, "Hello \"you\" ✓\n", string(b))
			require.Equal(t, map[string]any{"$status": "done", "summary": "it is written"}, got.Output)
			require.Len(t, got.Turns, 6)
			require.Equal(t, "I look and write.", got.Turns[0].Content)
			require.EqualValues(t, 20, got.Turns[5].Usage.OutputTokens)
			require.NotContains(t, got.Stdout+got.Stderr, "sk-fake")
		})
		t.Run(fmt.Sprintf("react, stream %v", stream), func(t *testing.T) {
			_, got := run(t, ReactOptions(), "Hand it in")
			require.Equal(t, map[string]any{"$status": "done", "summary": "handed in"}, got.Output)
		})
		t.Run(fmt.Sprintf("llm, stream %v", stream), func(t *testing.T) {
			_, got := run(t, LLMOptions(), "Just say")
			require.Equal(t, map[string]any{"$status": "done", "summary": "said"}, got.Output)
		})
	}
}
