package llm

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// fixture is a reply of a real endpoint and its meaning.
type fixture struct {
	File    string            `json:"file"`
	Status  int               `json:"http_status"`
	Headers map[string]string `json:"headers"`
	Expect  struct {
		ErrorKind string   `json:"error_kind"`
		Retryable *bool    `json:"retryable"`
		WaitS     float64  `json:"wait_s"`
		Text      string   `json:"text"`
		Reasoning string   `json:"reasoning"`
		Finish    string   `json:"finish"`
		IDs       any      `json:"ids"`
		CostUSD   *float64 `json:"cost_usd"`
		Outcome   string   `json:"outcome"`
		ToolCalls []struct {
			Name string         `json:"name"`
			Args map[string]any `json:"arguments"`
		} `json:"tool_calls"`
		Usage *struct {
			Input     int64 `json:"input_tokens"`
			CacheRead int64 `json:"cache_read_tokens"`
			Output    int64 `json:"output_tokens"`
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"usage"`
	} `json:"expect"`
}

// Fixtures that are deliberately interpreted differently.
var otherKinds = map[string]errorkind.Kind{
	// The router's message hides the provider's, which reports a wrong order of messages; that can be fixed.
	"err_openrouter_raw.json": MessageOrder,
	// Fixed by describing the calls as plain text.
	"err_gemini_array.json": Compat,
	// Overload is one kind, whatever the status.
	"err_anthropic_overloaded.json": errorkind.RateLimit,
}

func TestRepliesOfRealEndpoints(t *testing.T) {
	t.Parallel()
	metas, err := filepath.Glob("testdata/endpoints/*.meta.json")
	require.NoError(t, err)
	require.NotEmpty(t, metas)
	for _, meta := range metas {
		t.Run(strings.TrimSuffix(filepath.Base(meta), ".meta.json"), func(t *testing.T) {
			t.Parallel()
			f, body := readFixture(t, meta)
			if f.Expect.ErrorKind != "" {
				checkError(t, f, body)
				return
			}
			checkReply(t, f, body)
		})
	}
}

func readFixture(t *testing.T, meta string) (fixture, string) {
	t.Helper()
	var f fixture
	b, err := os.ReadFile(meta)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &f))
	body, err := os.ReadFile(filepath.Join(filepath.Dir(meta), f.File))
	require.NoError(t, err)
	if f.Status == 0 {
		f.Status = 200
	}
	return f, string(body)
}

func (f fixture) contentType() string {
	if strings.HasSuffix(f.File, ".sse") {
		return "text/event-stream"
	}
	return "application/json"
}

func checkReply(t *testing.T, f fixture, body string) {
	t.Helper()
	e := serve(t, reply(f.Status, f.contentType(), body))
	resp := mustAsk(t, e.client(&waits{}))
	want := f.Expect
	if want.Text != "" {
		require.Equal(t, want.Text, resp.Message.Content)
	}
	if want.Reasoning != "" {
		require.Equal(t, want.Reasoning, resp.Message.Reasoning)
	}
	if want.Finish != "" {
		require.Equal(t, Finish(want.Finish), resp.Finish)
	}
	if want.Outcome == "refusal" {
		require.Equal(t, FinishRefusal, resp.Finish)
	}
	if want.CostUSD != nil {
		require.Equal(t, want.CostUSD, resp.Usage.CostUSD)
	}
	if u := want.Usage; u != nil {
		got := resp.Usage
		require.Equal(t, []int64{u.Input, u.CacheRead, u.Output}, []int64{got.InputTokens, got.CacheReadTokens, got.OutputTokens})
		require.GreaterOrEqual(t, got.ReasoningTokens, u.Reasoning)
	}
	if want.ToolCalls != nil {
		checkCalls(t, f, resp.Message.ToolCalls)
	}
}

func checkCalls(t *testing.T, f fixture, calls []ToolCall) {
	t.Helper()
	require.Len(t, calls, len(f.Expect.ToolCalls))
	ids := map[string]bool{}
	for i, want := range f.Expect.ToolCalls {
		args, err := ParseArgs(calls[i].Args)
		require.NoError(t, err)
		require.Equal(t, want.Name, calls[i].Name)
		require.Equal(t, want.Args, args)
		require.Regexp(t, `^[A-Za-z0-9_-]{1,40}$`, calls[i].ID)
		ids[calls[i].ID] = true
	}
	require.Len(t, ids, len(calls), "ids must be unique")
	if want, ok := f.Expect.IDs.([]any); ok {
		for i, id := range want {
			require.Equal(t, id, calls[i].ID)
		}
	}
}

func checkError(t *testing.T, f fixture, body string) {
	t.Helper()
	answer := reply(f.Status, f.contentType(), body)
	e := serve(t, answer)
	for name, value := range f.Headers {
		e.handlers[0] = withHeader(e.handlers[0], name, value)
	}
	var w waits
	_, err := ask(t, e.client(&w))
	var got *Error
	require.True(t, errors.As(err, &got), "%v", err)
	want := errorkind.Kind(f.Expect.ErrorKind)
	if other, ok := otherKinds[f.File]; ok {
		want = other
	}
	require.Equal(t, want, got.Kind, "%v", err)
	if r := f.Expect.Retryable; r != nil {
		require.Equal(t, *r, len(w.list) > 0, "waits: %v", w.list)
	}
	if f.Expect.WaitS > 0 {
		require.Equal(t, time.Duration(f.Expect.WaitS*float64(time.Second)), w.list[0])
	}
	require.NotContains(t, err.Error(), testKey)
}

// Unknown fields of a reply are sent back to the same model.
func TestUnknownFieldsGoBack(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ field, want string }{
		"stream_deepseek_reasoning": {"reasoning_content", `"I need the file."`},
		"stream_openrouter":         {"reasoning_details", `[{"type":"reasoning.text","text":"hm","signature":"sig==","format":"anthropic-claude-v1","index":0}]`},
		"stream_gemini_signature":   {"tool_calls.extra_content", `{"google":{"thought_signature":"CtoBAb4…"}}`},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, body := readFixture(t, filepath.Join("testdata", "endpoints", name+".meta.json"))
			e := serve(t, reply(200, f.contentType(), body), says("ok"))
			c := e.client(&waits{})
			first := mustAsk(t, c)
			history := []Message{System("s"), User("u"), first.Message, ToolResult(first.Message.ToolCalls[0].ID, "text")}
			_, err := c.Complete(t.Context(), Request{Messages: history})
			require.NoError(t, err)

			sent := e.requests()[1]["messages"].([]any)[2].(map[string]any)
			field, inCall := strings.CutPrefix(cases[name].field, "tool_calls.")
			if inCall {
				sent = sent["tool_calls"].([]any)[0].(map[string]any)
			}
			got, err := json.Marshal(sent[field])
			require.NoError(t, err)
			require.JSONEq(t, cases[name].want, string(got))

			other := e.config()
			other.Model = "another"
			_, err = New(other, Options{}).Complete(t.Context(), Request{Messages: history})
			require.NoError(t, err)
			raw, err := json.Marshal(e.requests()[2]["messages"])
			require.NoError(t, err)
			require.NotContains(t, string(raw), field, "another model must not get it")
		})
	}
}

// Every call of a reply is kept, even with invalid arguments, because it has to be answered.
func TestMalformedCallsAreKept(t *testing.T) {
	t.Parallel()
	f, body := readFixture(t, filepath.Join("testdata", "endpoints", "msg_malformed_args.meta.json"))
	resp := mustAsk(t, serve(t, reply(200, f.contentType(), body)).client(&waits{}))
	var understood []string
	for _, call := range resp.Message.ToolCalls {
		if _, err := ParseArgs(call.Args); err == nil {
			understood = append(understood, call.ID)
		}
	}
	require.Len(t, resp.Message.ToolCalls, 9)
	// c2 has single quotes; repairing it would mean guessing about quotes in the text.
	require.Equal(t, []string{"c1", "c3", "c4", "c5", "c6", "c8"}, understood)
}
