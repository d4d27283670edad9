package react

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// instant is a model that answers at once, so only the loop's own time remains.
type instant struct{ left int }

func (m *instant) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	m.left--
	if m.left <= 0 {
		return llm.Response{Message: llm.Message{Role: protocol.TurnAssistant, Content: final}, Finish: llm.FinishStop}, nil
	}
	call := llm.ToolCall{ID: fmt.Sprint(m.left), Name: "list_dir", Args: fmt.Sprintf(`{"depth":%d}`, m.left)}
	return llm.Response{Message: llm.Message{Role: protocol.TurnAssistant, ToolCalls: []llm.ToolCall{call}}, Finish: llm.FinishCalls}, nil
}

// A turn costs the same at the end of a long run as at its beginning: compare the times per turn.
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

// BenchmarkEndpoint measures the complete path over HTTP: the median time between the end of one reply and
// the arrival of the next request at a local endpoint, for the first and the last turns of a run of 200, with
// results of 1 and of 20 kB.
func BenchmarkEndpoint(b *testing.B) {
	for _, size := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			const turns = 200
			for b.Loop() {
				gaps := timeTurns(b, turns, size)
				b.ReportMetric(median(gaps[:20]), "µs/first20")
				b.ReportMetric(median(gaps[turns-21:]), "µs/last20")
				b.ReportMetric(median(gaps), "µs/median")
			}
		})
	}
}

func median(gaps []time.Duration) float64 {
	sorted := slices.Sorted(slices.Values(gaps))
	return float64(sorted[len(sorted)/2].Microseconds())
}

// timeTurns runs the loop against an endpoint that answers at once.
func timeTurns(b *testing.B, turns, size int) []time.Duration {
	b.Helper()
	var gaps []time.Duration
	var answered time.Time
	var n atomic.Int64
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		i := int(n.Add(1))
		if i > 1 {
			gaps = append(gaps, time.Since(answered))
		}
		message := map[string]any{"content": final}
		if i < turns {
			message = map[string]any{"tool_calls": []any{map[string]any{"id": fmt.Sprint("c", i), "function": map[string]any{
				"name": "long", "arguments": fmt.Sprintf(`{"n":%d}`, i)}}}}
		}
		body, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": message, "finish_reason": "stop"}}})
		if err != nil {
			panic(err)
		}
		answered = time.Now()
		_, _ = w.Write(body)
	}))
	defer e.Close()
	sessions := Sessions{Dir: b.TempDir(), NewID: func() (string, error) { return "s", nil }}
	s, err := sessions.New(llm.User("task"))
	require.NoError(b, err)
	loop := Loop{
		Model: llm.New(config.Endpoint{BaseURL: e.URL, Model: "m", Stream: true}, llm.Options{}),
		Tools: long(b, size), Turns: turns + 5, Accept: accept,
	}
	_, err = loop.Run(b.Context(), s)
	require.NoError(b, err)
	return gaps
}

// long is a tool with a result of a given size.
func long(t testing.TB, size int) *tools.Registry {
	t.Helper()
	text := strings.Repeat("some text\n", size/10)
	r, err := tools.NewRegistry(tools.New(tools.Spec{Name: "long", Parameters: map[string]any{
		"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}},
	}}, func(_ context.Context, a struct{ N int }) (string, error) {
		return fmt.Sprint(a.N) + text, nil
	}))
	require.NoError(t, err)
	return r
}

// A tool's result of 10 MB is not kept in memory.
func TestHugeResultIsNotKept(t *testing.T) {
	m := script(t, callTool("a", "long", `{"n":1}`), callTool("b", "long", `{"n":2}`), say(final))
	b := newBench(t, m)
	b.Tools = long(t, 10<<20)
	b.mustRun()
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	require.Less(t, mem.HeapAlloc, uint64(40<<20), "the tool holds 10 MB itself")
	for _, msg := range m.requests()[2].Messages {
		require.Less(t, len(msg.Content), 64<<10)
	}
}
