//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/util/env"
)

// night is a home with an adjustable clock, and a provider with an hourly limit.
type night struct {
	t       *testing.T
	dir     string
	ahead   atomic.Int64 // of the real clock, in ns
	windows []window
	begun   time.Time // the first hour
	asked   atomic.Int64
	refused atomic.Int64
}

// window is an hour of the provider: how many replies it grants, and its response after that.
type window struct {
	grants  int64
	retries string // Retry-After; "" for the correct value
}

func (n *night) now() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }

// ServeHTTP implements http.Handler: a model that says "more" until its last reply.
func (n *night) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	hour := min(int(n.now().Sub(n.begun)/time.Hour), len(n.windows)-1)
	granted := int64(0)
	for _, passed := range n.windows[:hour+1] {
		granted += passed.grants
	}
	w.Header().Set("Content-Type", "application/json")
	if n.asked.Load() >= granted {
		n.refused.Add(1)
		left := time.Until(n.begun.Add(time.Duration(hour+1) * time.Hour)) // by the agent's clock, which is the real one
		says := n.windows[hour].retries
		if says == "" {
			says = strconv.Itoa(int(left.Seconds()) + 1)
		}
		w.Header().Set("Retry-After", says)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"you have reached your limit for this hour","code":"rate_limit_exceeded"}}`)
		return
	}
	status := "more"
	if n.asked.Add(1) == 7 {
		status = "done"
	}
	reply := map[string]any{
		"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": "---\n$status: " + status + "\n---\n"}, "finish_reason": "stop"}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 7},
	}
	_ = json.NewEncoder(w).Encode(reply)
}

// stand is a thread's state as printed by uwf.
type stand struct {
	Thread, Status   string
	RateLimitedUntil int64
	Totals           struct{ Steps, InputTokens, OutputTokens int64 }
	Threads          []struct{ Thread string }
}

// types runs a command in this process at the night's time.
func (n *night) types(words ...string) (at stand, code int) {
	n.t.Helper()
	random, err := os.Open("/dev/urandom")
	require.NoError(n.t, err)
	defer random.Close()
	var out, talk bytes.Buffer
	code = cli.Main(n.t.Context(), env.Env{
		Args: append([]string{"--format", "json"}, words...), Dir: n.dir, Stdin: bytes.NewReader(nil), Stdout: &out, Stderr: &talk,
		Environ: append(os.Environ(), "UWF_HOME="+filepath.Join(n.dir, "home"), "HOME="+n.dir), Now: n.now, Rand: random,
	})
	if out.Len() > 0 {
		require.NoError(n.t, json.Unmarshal(out.Bytes(), &at), "uwf %q\n%s%s", words, out.String(), talk.String())
	}
	return at, code
}

// cron runs uwf run-due, and a night passes in fast forward. Wrong values from the provider are bounded, and
// the run's limit covers all of its parts. (A report: "my limit is reset every hour, and I want to find it
// done in the morning".)
func TestOvernightInFastForward(t *testing.T) {
	n := &night{t: t, dir: t.TempDir(), begun: time.Now(), windows: []window{{2, ""}, {2, "99999999999"}, {0, ""}, {1, ""}, {5, ""}}}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	require.NoError(t, os.Mkdir(filepath.Join(n.dir, "home"), 0o700))
	for name, text := range map[string]string{
		"loop.yaml": loopWorkflow,
		"home/config.yaml": fmt.Sprintf(`providers: { here: { baseUrl: %q, apiKey: k-0123456789 } }
models: { m: { provider: here, name: m } }
defaultModel: m
agents: { builtin: { command: uwf-builtin, onRateLimit: wait, maxRateLimitWait: 2h, retry: { attempts: 1 } } }
defaultAgent: builtin
`, server.URL),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600))
	}
	at, code := n.types("run", "loop.yaml", "-p", "Work through the night", "--max-tokens", "600")
	require.Equal(t, "rate-limited", at.Status)
	require.NotZero(t, code)
	require.InDelta(t, n.begun.Add(time.Hour).UnixMilli(), at.RateLimitedUntil, 60_000, "the provider's own time")
	thread := at.Thread

	stopped := 0
	for begun := n.now(); at.Status != "completed"; { // cron, every ten minutes
		require.Less(t, n.now().Sub(begun), 12*time.Hour, "it is morning")
		n.ahead.Add(int64(10 * time.Minute))
		before := n.asked.Load() + n.refused.Load()
		ticked, _ := n.types("run-due")
		was := at
		at, _ = n.types("thread", "show", thread)
		if was.Status == "rate-limited" && n.now().UnixMilli() < was.RateLimitedUntil {
			require.Empty(t, ticked.Threads, "nobody disturbs it")
			require.Equal(t, before, n.asked.Load()+n.refused.Load())
		}
		require.LessOrEqual(t, at.RateLimitedUntil, n.now().Add(2*time.Hour).UnixMilli(), "no provider parks it for ever")
		if at.Status == "suspended" { // at its limit, which only a person can raise
			stopped++
			_, _ = n.types("run-due")
			require.EqualValues(t, 6, at.Totals.Steps)
			_, code := n.types("thread", "resume", thread, "-c", "1")
			require.Equal(t, 6, code, "nor does resuming")
			require.EqualValues(t, 6, n.asked.Load())
			at, _ = n.types("thread", "resume", thread, "--add-tokens", "200")
		}
	}
	require.Equal(t, 1, stopped)
	require.EqualValues(t, 7, n.asked.Load())
	require.Less(t, n.refused.Load(), int64(12), "it is asked when the time has come, and not before")
}

const loopWorkflow = `name: loop
description: Goes round in a circle.
roles:
  thinker:
    description: Thinks.
    goal: Think.
    frontmatter: { type: object, properties: { $status: { enum: [more, done] } }, required: [$status] }
graph:
  $START: { _: thinker }
  thinker: { more: thinker, done: $END }
`

const loopScenario = `repeat: true
steps:
  - value: { $status: more }
    usage: { turns: 1, outputTokens: 10, costUsd: 0.4 }
`
