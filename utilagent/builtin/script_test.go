package builtin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

const key = "sk-test-0123456789"

// endpoint plays one reply per request and repeats the last one.
type endpoint struct {
	caches string // of commands

	*httptest.Server
	mu      sync.Mutex
	replies []reply
	asked   []string // bodies
}

type reply struct {
	text   string
	calls  []string // name, arguments
	status int
	header string // Retry-After
	free   bool   // report no usage
	cut    bool   // at the limit for one reply
}

func say(text string) reply                  { return reply{text: text} }
func call(calls ...string) reply             { return reply{calls: calls} }
func refuse(status int, header string) reply { return reply{status: status, header: header} }

func serve(t *testing.T, replies ...reply) *endpoint {
	t.Helper()
	e := &endpoint{replies: replies, caches: t.TempDir()}
	e.Server = httptest.NewServer(http.HandlerFunc(e.answer))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.asked = append(e.asked, string(body))
	play := e.replies[min(len(e.asked), len(e.replies))-1]
	e.mu.Unlock()
	if play.status != 0 {
		w.Header().Set("Retry-After", play.header)
		w.WriteHeader(play.status)
		fmt.Fprintf(w, `{"error":{"message":"refused %s"}}`, r.Header.Get("Authorization"))
		return
	}
	var calls []any
	for i := 0; i+1 < len(play.calls); i += 2 {
		calls = append(calls, map[string]any{"id": fmt.Sprint("call", i), "type": "function",
			"function": map[string]any{"name": play.calls[i], "arguments": play.calls[i+1]}})
	}
	message := map[string]any{"role": "assistant", "content": play.text}
	if calls != nil {
		message["tool_calls"] = calls
	}
	whole := map[string]any{"model": "m-2029", "choices": []any{map[string]any{"message": message, "finish_reason": map[bool]string{true: "length", false: "stop"}[play.cut]}}}
	if !play.free {
		whole["usage"] = map[string]any{"prompt_tokens": 100, "completion_tokens": 10}
	}
	_ = json.NewEncoder(w).Encode(whole)
}

// messages returns the messages of the n-th request, as "role: content".
func (e *endpoint) messages(t *testing.T, n int) []string {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.Greater(t, len(e.asked), n)
	var body struct {
		Messages []struct{ Role, Content string }
	}
	require.NoError(t, json.Unmarshal([]byte(e.asked[n]), &body))
	var list []string
	for _, m := range body.Messages {
		list = append(list, m.Role+": "+m.Content)
	}
	return list
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// scenario returns a thread whose config contains the endpoint and additional lines.
func (e *endpoint) scenario(more string) agentkittest.Scenario {
	return agentkittest.Scenario{
		Task:    "Do the work.",
		Environ: []string{"LOCAL_KEY=" + key, "UWF_BUILTIN_ALLOW_SHELL=", "XDG_CACHE_HOME=" + e.caches},
		Config: strings.TrimSpace(fmt.Sprintf(`
providers:
  local: { baseUrl: %q, apiKeyEnv: LOCAL_KEY }
models:
  main: { provider: local, name: main-model }
  other: { provider: local, name: other-model }
defaultModel: main
%s`, e.URL+"/v1", more)) + "\n",
	}
}

const done = "---\n$status: done\nsummary: it works\n---\nAll of it.\n"
