package llm

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// flood writes for as long as the client reads.
func flood(piece string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	}
}

// A broken endpoint can neither fill the memory nor block forever.
func TestEndlessReplies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ piece string }{
		"a line without an end":   {strings.Repeat("x", 64<<10)},
		"JSON without an end":     {"{" + strings.Repeat(" ", 64<<10)},
		"an event without an end": {"data: [1,\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ask(t, serve(t, flood(c.piece)).client(&waits{}))
			prosetest.Error(t, err)
		})
	}
}

// Comments keep a connection alive, but not forever.
func TestReplyThatOnlyKeepsTheConnection(t *testing.T) {
	t.Parallel()
	keepAlive := func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, ": processing\n\n"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			<-tick.C
		}
	}
	e := serve(t, keepAlive, says("whole"))
	var w waits
	c := New(e.config(), Options{Sleep: w.sleep, MaxDuration: 300 * time.Millisecond})
	resp := mustAsk(t, c)
	require.Equal(t, "whole", resp.Message.Content)
	require.NotEmpty(t, resp.Failures)
	prosetest.Text(t, resp.Failures[0].Reason)
	require.Equal(t, w.list[0], resp.Failures[0].Wait)
}

// An answer can be watched while the model writes it.
func TestStreamIsWatched(t *testing.T) {
	t.Parallel()
	go1, go2 := make(chan struct{}), make(chan struct{})
	e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, piece := range []struct {
			text string
			wait chan struct{}
		}{{"Half", go1}, {" done.", go2}} {
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"`+piece.text+`","reasoning":"hm","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			<-piece.wait
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	var seen []string
	resp, err := e.client(&waits{}).Complete(t.Context(), Request{
		Messages: []Message{User("u")},
		Watch: func(soFar func() Message) {
			m := soFar()
			seen = append(seen, m.Content+"|"+m.Reasoning+"|"+m.ToolCalls[0].Args)
			close([]chan struct{}{go1, go2}[len(seen)-1]) // the endpoint continues only after this was seen
		},
	})
	require.NoError(t, err)
	require.Equal(t, "Half done.", resp.Message.Content)
	require.Equal(t, []string{"Half|hm|{", "Half done.|hmhm|{{"}, seen)
}

func TestToolIsForced(t *testing.T) {
	t.Parallel()
	refuse := reply(400, "application/json", `{"error":{"message":"tool_choice: only auto is supported"}}`)
	e := serve(t, refuse, says("ok"))
	resp, err := e.client(&waits{}).Complete(t.Context(), Request{Messages: []Message{User("u")}, Tools: []Tool{{Name: "resolve"}}, Force: "resolve"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"type": "function", "function": map[string]any{"name": "resolve"}}, e.requests()[0]["tool_choice"])
	require.NotContains(t, e.requests()[1], "tool_choice")
	require.Len(t, resp.Failures, 1)
	prosetest.Text(t, resp.Failures[0].Reason)
}

// The config's price applies only if the endpoint reports no cost.
func TestCost(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":600}`
	cached := 0.5
	price := &protocol.Price{Input: 2, Output: 10, CacheRead: &cached}
	dear := &protocol.Price{Input: 2, Output: 10}
	for name, c := range map[string]struct {
		usage string
		price *protocol.Price
		want  *float64
	}{
		"unknown":        {usage + `}`, nil, nil},
		"by price":       {usage + `}`, price, new(0.0021)},
		"no cache price": {usage + `}`, dear, new(0.003)},
		"told":           {usage + `,"cost":0.7}`, price, new(0.7)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, reply(200, "application/json", `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],`+c.usage+`}`))
			config := e.config()
			config.Price = c.price
			got := mustAsk(t, New(config, Options{})).Usage.CostUSD
			if c.want == nil {
				require.Nil(t, got)
				return
			}
			require.InDelta(t, *c.want, *got, 1e-9)
		})
	}
}

// A proxy's response is distinguished from the endpoint's, and its page is not shown completely.
func TestHTMLInEveryPlace(t *testing.T) {
	t.Parallel()
	page := "<html><head><script>var x</script></head><body><h1>Blocked &amp; logged</h1>" + strings.Repeat("<p>text</p>", 5000) + "</body></html>"
	for _, status := range []int{200, 403, 503} {
		_, err := ask(t, serve(t, reply(status, "text/html", page)).client(&waits{}))
		var e *Error
		require.True(t, errors.As(err, &e))
		prosetest.Text(t, e.Message)
		require.Less(t, len(e.Message), 500)
	}
}

// The memory for a long reply is proportional to its size, not to the number of its pieces.
func TestManyPiecesAreCheap(t *testing.T) {
	t.Parallel()
	for name, delta := range map[string]string{
		"text":               `{"content":"word "}`,
		"thoughts":           `{"reasoning_content":"word "}`,
		"details of them":    `{"reasoning_details":[{"type":"reasoning.text","index":0,"format":"f"}]}`,
		"arguments":          `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"word"}}]}`,
		"a name again":       `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"word"}}]}`,
		"a field of no name": `{"new_field":"word "}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const pieces = 20000
			chunk := `data: {"choices":[{"delta":` + delta + `}]}` + "\n\n"
			stream := strings.Repeat(chunk, pieces) + `data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n"
			e := serve(t, reply(200, "text/event-stream", stream))
			c := e.client(&waits{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			mustAsk(t, c)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<30), "allocated in all, also by tests beside this one")
		})
	}
}

// One endpoint's deviations affect only the deviating part.
func TestOddReplies(t *testing.T) {
	t.Parallel()
	const said = `"choices":[{"index":"0","message":{"content":"x"},"finish_reason":"stop"}]`
	for name, c := range map[string]struct {
		more    string
		in, out int64
		cost    *float64
	}{
		"fractions":             {`"usage":{"prompt_tokens":12.0,"completion_tokens":3.0}`, 12, 3, nil},
		"texts":                 {`"usage":{"prompt_tokens":"12","completion_tokens":"3","cost":"0.5"}`, 12, 3, new(0.5)},
		"nothing":               {`"usage":{"prompt_tokens":null,"completion_tokens":-3,"cost":-1}`, 0, 0, nil},
		"beyond all bounds":     {`"usage":{"prompt_tokens":1e300,"completion_tokens":9223372036854775807}`, 0, 0, nil},
		"lists for objects":     {`"usage":{"prompt_tokens":12,"prompt_tokens_details":[],"completion_tokens":3,"completion_tokens_details":[]}`, 12, 3, nil},
		"no usage but a list":   {`"usage":[]`, 0, 0, nil},
		"a model that is one":   {`"model":{"id":"m"},"usage":{"prompt_tokens":12}`, 12, 0, nil},
		"an error that is none": {`"error":"","usage":{"prompt_tokens":12}`, 12, 0, nil},
		"an empty error":        {`"error":{},"usage":{"prompt_tokens":12}`, 12, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t,
				reply(200, "application/json", `{`+said+`,`+c.more+`}`),
				reply(200, "text/event-stream", "data: {"+said+","+c.more+"}\n\ndata: [DONE]\n\n"),
			)
			client := New(e.config(), Options{})
			for range 2 {
				got := mustAsk(t, client)
				require.Equal(t, "x", got.Message.Content)
				require.Equal(t, c.in, got.Usage.InputTokens)
				require.Equal(t, c.out, got.Usage.OutputTokens)
				require.Equal(t, c.cost, got.Usage.CostUSD)
			}
			require.Len(t, e.requests(), 2, "nothing was asked again")
		})
	}
}

// Calls arrive as a list, as a single call, and with null among them.
func TestOddCalls(t *testing.T) {
	t.Parallel()
	const call = `{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}`
	for list, want := range map[string]int{
		`[` + call + `]`: 1, call: 1, `[null,` + call + `,{},7]`: 1, `[]`: 0, `null`: 0, `[null]`: 0, `"none"`: 0,
	} {
		e := serve(t, reply(200, "application/json", `{"choices":[{"message":{"content":"x","tool_calls":`+list+`},"finish_reason":"stop"}]}`))
		got := mustAsk(t, New(e.config(), Options{}))
		require.Len(t, got.Message.ToolCalls, want, list)
	}
}
