package builtin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// Memory use depends on the size of the conversation, not on how many turns it has: 200 turns, each of which
// reads a page of a file.
func TestMemoryOfALongConversation(t *testing.T) {
	t.Parallel()
	const (
		turns = 200
		page  = 28 << 10
		most  = 80 << 20 * shadow
	)
	var asked, pid, peak atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // 5 MB at the end
		n := asked.Add(1)
		message := map[string]any{"role": "assistant", "content": done}
		if n <= turns {
			args := fmt.Sprintf(`{"path":"lines.txt","offset":%d,"limit":%d}`, n*7, page/64)
			message = map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{
				"id": fmt.Sprint("call", n), "type": "function", "function": map[string]any{"name": "read_file", "arguments": args},
			}}}
		} else {
			peak.Store(peakOf(t, pid.Load()))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message, "finish_reason": "stop"}}})
	}))
	t.Cleanup(server.Close)
	th := agentkittest.New(t, (&endpoint{Server: server}).scenario("builtin: { maxTurns: 300 }"))
	var lines strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&lines, "%-63d\n", i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(th.Cwd, "lines.txt"), []byte(lines.String()), 0o600))
	th.Play(func(e agentkit.Process) int { return start(t, e, &pid) }).Succeeded()
	require.EqualValues(t, turns+1, asked.Load())
	t.Logf("peak %d MB", peak.Load()>>20)
	require.Less(t, peak.Load(), int64(most))
}
