package builtin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// BenchmarkOwnTime measures the overhead of a turn of uwf-builtin: from the end of a reply to the arrival of
// the next request at a local endpoint. In between, a file is read, and the turns, the record and the
// conversation are stored. A request contains the whole conversation, and sending it takes time: "sent" is a
// plain POST of as many bytes to the same endpoint, so "own" does not depend on the number of turns.
func BenchmarkOwnTime(b *testing.B) {
	for _, size := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("results of %d bytes", size), func(b *testing.B) {
			const turns = 205
			var took, sent [turns][]time.Duration
			for b.Loop() {
				e := timeTurns(b, turns, size)
				for i, q := range e.questions {
					took[i] = append(took[i], q.took)
					sent[i] = append(sent[i], e.floor(b, q.bytes))
				}
			}
			around := func(list [turns][]time.Duration, turn int) float64 {
				near := slices.Concat(list[max(turn-5, 1):min(turn+5, turns)]...)
				slices.Sort(near)
				return float64(near[len(near)/2].Microseconds())
			}
			for _, turn := range []int{1, 50, 100, 200} {
				all, bare := around(took, turn), around(sent, turn)
				b.ReportMetric(all-bare, fmt.Sprintf("µs-own-at-%d", turn))
				b.ReportMetric(bare, fmt.Sprintf("µs-sent-at-%d", turn))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// timed is an endpoint that answers at once and records when it was asked.
type timed struct {
	*httptest.Server
	answered  time.Time
	questions []question
	turns     int
}

type question struct {
	took  time.Duration
	bytes int64
}

// timeTurns has the agent read a file in each of its turns.
func timeTurns(b *testing.B, turns, size int) *timed {
	b.Helper()
	e := &timed{turns: turns}
	e.Server = httptest.NewServer(e)
	b.Cleanup(e.Close)
	th := agentkittest.New(b, (&endpoint{Server: e.Server}).scenario("builtin: { maxTurns: 300 }"))
	line := strings.Repeat("x", 99) + "\n"
	for i := range turns {
		text := fmt.Sprint(i, "\n", strings.Repeat(line, size/100))
		require.NoError(b, os.WriteFile(filepath.Join(th.Cwd, fmt.Sprint(i)), []byte(text), 0o600))
	}
	th.Run(Options()).Succeeded()
	require.Len(b, e.questions, turns)
	return e
}

func (e *timed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	if r.URL.Path == "/floor" {
		return
	}
	e.questions = append(e.questions, question{time.Since(e.answered), n})
	i := len(e.questions)
	message := map[string]any{"content": done}
	if i < e.turns {
		message = map[string]any{"tool_calls": []any{map[string]any{"id": fmt.Sprint("c", i), "type": "function",
			"function": map[string]any{"name": "read_file", "arguments": fmt.Sprintf(`{"path":"%d"}`, i)}}}}
	}
	chunk, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": message, "finish_reason": "stop"}}})
	_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
	e.answered = time.Now()
}

// floor measures a plain POST of some bytes.
func (e *timed) floor(b *testing.B, bytes int64) time.Duration {
	b.Helper()
	body := strings.NewReader(strings.Repeat("x", int(bytes)))
	began := time.Now()
	resp, err := e.Client().Post(e.URL+"/floor", "", body)
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
	return time.Since(began)
}
