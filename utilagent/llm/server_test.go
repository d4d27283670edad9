package llm

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/config"
)

const testKey = "sk-test-0123456789abcdef"

// endpoint is a server that answers each request with the next handler, repeating the last one, and records
// the requests.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	handlers []http.HandlerFunc
	bodies   []map[string]any
	headers  []http.Header
}

func serve(t *testing.T, handlers ...http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{handlers: handlers}
	e.Server = httptest.NewServer(http.HandlerFunc(e.answer))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) answer(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var body map[string]any
	_ = json.Unmarshal(b, &body)
	e.mu.Lock()
	e.bodies = append(e.bodies, body)
	e.headers = append(e.headers, r.Header)
	h := e.handlers[min(len(e.bodies), len(e.handlers))-1]
	e.mu.Unlock()
	h(w, r)
}

func (e *endpoint) requests() []map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]map[string]any(nil), e.bodies...)
}

// waits records how long a client would have slept.
type waits struct{ list []time.Duration }

func (w *waits) sleep(ctx context.Context, d time.Duration) error {
	w.list = append(w.list, d)
	return context.Cause(ctx)
}

// client returns a streaming client of the server that never really waits.
func (e *endpoint) client(w *waits) *Client {
	return New(e.config(), Options{Sleep: w.sleep, Jitter: func() float64 { return 0.5 }})
}

func (e *endpoint) config() config.Endpoint {
	return config.Endpoint{
		Alias: "default", Provider: "local", BaseURL: e.URL + "/api/v1", APIKey: testKey,
		Model: "m", KeySource: "environment LOCAL_KEY", Stream: true,
	}
}

// reply answers with a body of the given type.
func reply(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// says answers with a complete reply.
func says(text string) http.HandlerFunc {
	b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{
		"message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop",
	}}})
	return reply(200, "application/json", string(b))
}

func ask(t *testing.T, c *Client) (Response, error) {
	t.Helper()
	return c.Complete(t.Context(), Request{Messages: []Message{System("s"), User("u")}})
}

func mustAsk(t *testing.T, c *Client) Response {
	t.Helper()
	r, err := ask(t, c)
	require.NoError(t, err)
	return r
}
