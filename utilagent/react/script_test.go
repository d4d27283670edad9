package react

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// model is an endpoint that plays a script: the n-th request gets the n-th reply, and the last one repeats.
type model struct {
	*httptest.Server
	mu      sync.Mutex
	replies []http.HandlerFunc
	asked   []request
}

type request struct {
	Messages []struct {
		Role       string `json:"role"`
		Content    string `json:"content"`
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID string `json:"id"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools      []any  `json:"tools"`
	Choice     any    `json:"tool_choice"`
	ToolChoice string `json:"-"` // the value of Choice if it is a string
}

func (r request) last() string { return r.Messages[len(r.Messages)-1].Content }

func script(t *testing.T, replies ...http.HandlerFunc) *model {
	t.Helper()
	m := &model{replies: replies}
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.Close)
	return m
}

func (m *model) answer(w http.ResponseWriter, r *http.Request) {
	var asked request
	b, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(b, &asked)
	asked.ToolChoice, _ = asked.Choice.(string)
	m.mu.Lock()
	m.asked = append(m.asked, asked)
	h := m.replies[min(len(m.asked), len(m.replies))-1]
	m.mu.Unlock()
	h(w, r)
}

func (m *model) requests() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]request(nil), m.asked...)
}

// client returns a real client of the scripted endpoint that never really waits.
func (m *model) client() *llm.Client {
	return llm.New(m.config(), llm.Options{
		Idle: 400 * time.Millisecond, FirstByte: 10 * time.Second, // long enough for a busy machine, since streams may stall here
		Sleep: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) },
	})
}

func (m *model) config() config.Endpoint {
	return config.Endpoint{BaseURL: m.URL, Model: "m", Stream: true}
}

// say answers with text.
func say(text string) http.HandlerFunc { return reply("stop", text) }

// callTool answers with one call.
func callTool(id, name, args string) http.HandlerFunc { return reply("tool_calls", "", id, name, args) }

// reply answers with text and calls, three strings each: id, name, arguments.
func reply(finish, text string, calls ...string) http.HandlerFunc {
	message := map[string]any{"role": "assistant", "content": text}
	var list []any
	for i := 0; i+2 < len(calls); i += 3 {
		list = append(list, map[string]any{"id": calls[i], "type": "function", "function": map[string]any{"name": calls[i+1], "arguments": calls[i+2]}})
	}
	if list != nil {
		message["tool_calls"] = list
	}
	b, err := json.Marshal(map[string]any{
		"model": "m-2029", "choices": []any{map[string]any{"message": message, "finish_reason": finish}},
		"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5},
	})
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) }
}

// fail answers with an HTTP status.
func fail(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// bench is a loop with a tool that reads, one that writes and one that fails, and the recorded turns.
type bench struct {
	Loop
	t        *testing.T
	sessions Sessions
	turns    []protocol.Turn
	ran      []string
}

func newBench(t *testing.T, m *model) *bench {
	t.Helper()
	n := 0
	b := &bench{t: t, sessions: Sessions{Dir: t.TempDir(), NewID: func() (string, error) {
		n++
		return fmt.Sprintf("session%d", n), nil
	}}}
	type in struct {
		Text string `json:"text"`
	}
	params := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}, "required": []string{}}
	tool := func(name string, effect tools.Effect, f func(in) (string, error)) tools.Tool {
		return tools.New(tools.Spec{Name: name, Description: name, Parameters: params, Effect: effect},
			func(_ context.Context, a in) (string, error) {
				b.ran = append(b.ran, name+" "+a.Text)
				return f(a)
			})
	}
	registry, err := tools.NewRegistry(
		tool("echo", tools.Reads, func(a in) (string, error) { return "echo " + a.Text, nil }),
		tool("write", tools.Writes, func(a in) (string, error) { return "wrote " + a.Text, nil }),
		tool("broken", tools.Reads, func(in) (string, error) { return "", errors.New("it is broken. Do not use it") }),
	)
	require.NoError(t, err)
	b.Loop = Loop{
		Model: m.client(), Tools: registry, Turns: 10, Accept: accept,
		Record: func(_ context.Context, turn protocol.Turn) error {
			b.turns = append(b.turns, turn)
			return nil
		},
	}
	return b
}

// registry returns tools with the given names that do nothing.
func registry(t *testing.T, names ...string) *tools.Registry {
	t.Helper()
	r, err := tools.NewRegistry()
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, r.Add(tools.New(tools.Spec{Name: name}, func(context.Context, struct{}) (string, error) { return name, nil })))
	}
	return r
}

func accept(text string) error {
	if strings.HasPrefix(text, "---") {
		return nil
	}
	return errors.New("it has no block")
}

// run starts a session and runs it.
func (b *bench) run() (*Session, Answer, error) {
	b.t.Helper()
	s, err := b.sessions.New(llm.System("system"), llm.User("task"))
	require.NoError(b.t, err)
	answer, err := b.Run(b.t.Context(), s)
	return s, answer, err
}

func (b *bench) mustRun() (*Session, Answer) {
	b.t.Helper()
	s, answer, err := b.run()
	require.NoError(b.t, err)
	return s, answer
}

// asks continues with a user message.
func asks(text string) func([]llm.Message) []llm.Message {
	return func([]llm.Message) []llm.Message { return []llm.Message{llm.User(text)} }
}
