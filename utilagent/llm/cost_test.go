package llm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// A reply with only reasoning, as thinking models often send, is a valid reply.
func TestReplyWithOnlyThoughts(t *testing.T) {
	t.Parallel()
	thinks := "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n" +
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5000,\"completion_tokens\":3000}}\n\ndata: [DONE]\n\n"
	e := serve(t, reply(200, "text/event-stream", thinks), says("ok"))
	c := e.client(&waits{})
	resp := mustAsk(t, c)
	require.Empty(t, resp.Failures)
	require.Equal(t, "hm", resp.Message.Reasoning)
	require.EqualValues(t, 5000, resp.Usage.InputTokens)
	mustAsk(t, c)
	asked := e.requests()
	require.Len(t, asked, 2)
	require.Equal(t, true, asked[1]["stream"], "streaming has lost nothing")
}

func TestDiscardedWorkIsCharged(t *testing.T) {
	t.Parallel()
	empty := "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n"
	whole := `{"choices":[{"message":{"content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":3}}`
	e := serve(t, reply(200, "text/event-stream", empty), reply(200, "application/json", fmt.Sprintf(whole, "ok")))
	resp := mustAsk(t, e.client(&waits{}))
	require.EqualValues(t, 3, resp.Usage.OutputTokens, "of the reply itself")
	require.Equal(t, &protocol.Usage{Turns: 2, InputTokens: 200, OutputTokens: 10}, resp.Bill().Usage())
}

// If the reply without streaming is empty as well, streaming was not the cause.
func TestStreamingIsSwitchedOnAgain(t *testing.T) {
	t.Parallel()
	empty := reply(200, "text/event-stream", "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	e := serve(t, empty, reply(200, "application/json", `{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`), says("ok"))
	c := e.client(&waits{})
	require.True(t, mustAsk(t, c).Empty())
	require.Equal(t, "ok", mustAsk(t, c).Message.Content)
	asked := e.requests()
	require.Equal(t, []any{true, false, true}, []any{asked[0]["stream"], asked[1]["stream"], asked[2]["stream"]})
}

func TestAFilteredReplyIsPaidFor(t *testing.T) {
	t.Parallel()
	e := serve(t, reply(200, "application/json",
		`{"choices":[{"message":{"content":"x"},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":100,"completion_tokens":7}}`))
	resp, err := e.client(&waits{}).Complete(t.Context(), Request{Messages: []Message{User("u")}})
	require.Error(t, err)
	require.EqualValues(t, 7, resp.Bill().Usage().OutputTokens)
}

func TestUnreportedUsageHasNoPrice(t *testing.T) {
	t.Parallel()
	e := serve(t, says("ok"), reply(200, "application/json", `{"choices":[{"message":{"content":"ok"}}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`))
	c := e.client(&waits{})
	c.endpoint.Price = &protocol.Price{Input: 1, Output: 1}
	for range 2 {
		resp := mustAsk(t, c)
		require.Nil(t, resp.Usage.CostUSD)
		require.Nil(t, resp.Bill().Usage(), "unknown, not zero")
	}
}
