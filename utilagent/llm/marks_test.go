package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// markedIn lists the marked texts of a request, shortened.
func markedIn(t *testing.T, request map[string]any) (texts []string) {
	t.Helper()
	for _, m := range request["messages"].([]any) {
		parts, ok := m.(map[string]any)["content"].([]any)
		if !ok {
			continue
		}
		require.Len(t, parts, 1)
		p := parts[0].(map[string]any)
		require.Equal(t, "text", p["type"])
		require.Equal(t, map[string]any{"type": "ephemeral"}, p["cache_control"])
		text := p["text"].(string)
		texts = append(texts, text[:min(len(text), 8)])
	}
	return texts
}

func conversation(turns int) (list []Message) {
	list = []Message{System("system"), User("task")}
	for i := range turns {
		id := string(rune('a' + i))
		list = append(list, Message{Role: protocol.TurnAssistant, ToolCalls: []ToolCall{{ID: id, Name: "f", Args: "{}"}, {ID: id + "2", Name: "f", Args: "{}"}}},
			ToolResult(id, "first "+id), ToolResult(id+"2", "result "+id))
	}
	return list
}

// The parts that the next request shares are marked: the beginning, and the ends of this request and the
// previous one.
func TestCacheControl(t *testing.T) {
	t.Parallel()
	e := serve(t, says("ok"))
	config := e.config()
	config.CacheControl = true
	c := New(config, Options{})
	tools := []Tool{{Name: "f", Parameters: map[string]any{"type": "object"}}}
	for turns, want := range [][]string{
		{"system", "task"}, {"system", "task", "result a"}, {"system", "result a", "result b"}, {"system", "result b", "result c"},
	} {
		_, err := c.Complete(t.Context(), Request{Messages: conversation(turns), Tools: tools})
		require.NoError(t, err)
		require.Equal(t, want, markedIn(t, e.requests()[turns]))
	}
	for _, other := range []Request{
		{Messages: conversation(2)}, // sent only once
		{Messages: []Message{System("s"), User("u"), {Role: protocol.TurnAssistant, Content: "said"}}, Tools: tools},
		{Messages: []Message{System(" "), User("")}, Tools: tools},
	} {
		_, err := c.Complete(t.Context(), other)
		require.NoError(t, err)
	}
	require.Empty(t, markedIn(t, e.requests()[4]))
	require.Equal(t, []string{"s", "u"}, markedIn(t, e.requests()[5]), "a reply cannot be marked")
	require.Empty(t, markedIn(t, e.requests()[6]), "nor what says nothing")

	_, err := New(e.config(), Options{}).Complete(t.Context(), Request{Messages: conversation(2), Tools: tools})
	require.NoError(t, err)
	require.Empty(t, markedIn(t, e.requests()[7]))
}

// For an endpoint that rejects marks, the client omits them for its lifetime: first in tool results, then
// everywhere.
func TestCacheControlIsRefused(t *testing.T) {
	t.Parallel()
	tools := []Tool{{Name: "f", Parameters: map[string]any{"type": "object"}}}
	for _, refusal := range []string{
		`{"error":{"message":"messages.3.content.0.cache_control: Extra inputs are not permitted"}}`,
		`{"detail":[{"loc":["body","messages",3,"content"],"msg":"Input should be a valid string"}]}`,
	} {
		e := serve(t, reply(400, "application/json", refusal), reply(400, "application/json", refusal), says("ok"))
		config := e.config()
		config.CacheControl = true
		c := New(config, Options{})
		resp, err := c.Complete(t.Context(), Request{Messages: conversation(2), Tools: tools})
		require.NoError(t, err)
		require.Len(t, resp.Failures, 2)
		prosetest.Text(t, resp.Failures[0].Reason)
		_, err = c.Complete(t.Context(), Request{Messages: conversation(3), Tools: tools})
		require.NoError(t, err)
		asked := e.requests()
		require.Equal(t, []string{"system", "result a", "result b"}, markedIn(t, asked[0]))
		require.Equal(t, []string{"system"}, markedIn(t, asked[1]))
		require.Empty(t, markedIn(t, asked[2]))
		require.Empty(t, markedIn(t, asked[3]))

		// Without marks in the request, such an error is no reason to retry.
		e = serve(t, reply(400, "application/json", refusal), says("ok"))
		_, err = ask(t, New(e.config(), Options{}))
		require.Error(t, err)
	}
}

// Cache writes are counted, as reported by LiteLLM.
func TestCacheWritesAreCounted(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{
		`{"prompt_tokens":100,"completion_tokens":5,"cache_creation_input_tokens":60,"prompt_tokens_details":{"cached_tokens":30}}`,
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":30,"cache_creation_tokens":60}}`,
	} {
		var w wireUsage
		require.NoError(t, json.NewDecoder(strings.NewReader(usage)).Decode(&w))
		u := w.usage()
		require.Equal(t, []int64{10, 30, 60}, []int64{u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens})
	}
}

// Reasoning is counted once, whether an endpoint reports it in the completion or only in the total.
func TestReasoningIsCounted(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string][]int64{
		`{"prompt_tokens":100,"completion_tokens":40,"total_tokens":140,"completion_tokens_details":{"reasoning_tokens":30}}`: {40, 30},
		`{"prompt_tokens":100,"completion_tokens":10,"total_tokens":140,"completion_tokens_details":{"reasoning_tokens":30}}`: {40, 30}, // xAI
		`{"prompt_tokens":100,"completion_tokens":10,"total_tokens":140}`:                                                     {40, 30}, // Google
		`{"prompt_tokens":100,"completion_tokens":10,"total_tokens":140,"prompt_tokens_details":{"cached_tokens":30}}`:        {10, 0},
		`{"prompt_tokens":100,"completion_tokens":10}`:                                                                        {10, 0},
	} {
		var w wireUsage
		require.NoError(t, json.NewDecoder(strings.NewReader(usage)).Decode(&w))
		u := w.usage()
		require.Equal(t, want, []int64{u.OutputTokens, u.ReasoningTokens}, usage)
	}
}
