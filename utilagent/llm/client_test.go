package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

func withHeader(h http.HandlerFunc, name, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(name, value)
		h(w, r)
	}
}

func TestRequestGoesBelowTheBasePathWithTheKey(t *testing.T) {
	t.Parallel()
	var path string
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.String()
		says("hello")(w, r)
	})
	c := e.config()
	c.BaseURL += "/?api-version=1"
	require.Equal(t, "hello", mustAsk(t, New(c, Options{})).Message.Content)
	require.Equal(t, "/api/v1/chat/completions?api-version=1", path)
	require.Equal(t, "Bearer "+testKey, e.headers[0].Get("Authorization"))

	c.APIKey = ""
	mustAsk(t, New(c, Options{}))
	require.Empty(t, e.headers[1].Get("Authorization"), "no key, no header")
}

// The waits follow the endpoint's request, in every format.
func TestWaitsAsAsked(t *testing.T) {
	t.Parallel()
	const date = "Mon, 01 Jan 2029 00:00:00 GMT"
	cases := []struct {
		name    string
		headers map[string]string
		body    string
		want    time.Duration
	}{
		{"seconds", map[string]string{"Retry-After": "7"}, `{}`, 7 * time.Second},
		{"date", map[string]string{"Date": date, "Retry-After": "Mon, 01 Jan 2029 00:00:30 GMT"}, `{}`, 30 * time.Second},
		{"milliseconds first", map[string]string{"Retry-After": "7", "Retry-After-Ms": "250"}, `{}`, 250 * time.Millisecond},
		{"the limit that is used up", map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "1.5s", "X-Ratelimit-Reset-Requests": "6m"}, `{}`, 1500 * time.Millisecond},
		{"google", nil, `[{"error":{"code":429,"message":"m","details":[{"@type":"x"},{"retryDelay":"34s"}]}}]`, 34 * time.Second},
		{"prose", nil, `{"error":{"message":"Please try again in 20ms."}}`, 20 * time.Millisecond},
		{"prose, a clock", map[string]string{"Date": date}, `{"error":{"message":"Limit reached. It resets at 12:01 AM UTC."}}`, time.Minute},
		{"router", map[string]string{"Date": date}, `{"error":{"code":429,"message":"m","metadata":{"headers":{"X-RateLimit-Reset":"1861920045000"}}}}`, 45 * time.Second},
		{"nothing said", nil, `{}`, 2 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := reply(429, "application/json", c.body)
			for name, value := range c.headers {
				h = withHeader(h, name, value)
			}
			var w waits
			require.Equal(t, "ok", mustAsk(t, serve(t, h, says("ok")).client(&w)).Message.Content)
			require.Equal(t, []time.Duration{c.want}, w.list)
		})
	}
}

func TestTriesAreBounded(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		status int
		body   string
		header string
		want   int // number of requests
	}{
		{"rate limit", 429, `{}`, "", 4},
		{"server", 503, `{}`, "", 4},
		{"overloaded, by status", 529, `{}`, "", 4},
		{"overloaded, by words", 503, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "", 4},
		{"HTML from a proxy", 502, "<html><head><title>502 Bad Gateway</title></head></html>", "", 4},
		{"malformed call", 400, `{"error":{"message":"m","code":"tool_use_failed","failed_generation":"<function=x>"}}`, "", 3},
		{"a wait that is too long", 429, `{}`, "61", 1},
		{"wrong key", 401, `{}`, "", 1},
		{"bad request", 400, `{"error":{"message":"no such field"}}`, "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := reply(c.status, "application/json", c.body)
			if c.header != "" {
				h = withHeader(h, "Retry-After", c.header)
			}
			e := serve(t, h)
			_, err := ask(t, e.client(&waits{}))
			require.Error(t, err)
			require.Len(t, e.requests(), c.want)
		})
	}
}

func TestBackoffGrows(t *testing.T) {
	t.Parallel()
	var w waits
	_, err := ask(t, serve(t, reply(429, "application/json", `{}`)).client(&w))
	require.ErrorContains(t, err, "tried 4 times")
	require.Equal(t, []time.Duration{2e9, 4e9, 8e9}, w.list)
}

func TestCancelEndsTheWait(t *testing.T) {
	t.Parallel()
	e := serve(t, withHeader(reply(429, "application/json", `{"error":{"message":"slow down"}}`), "Retry-After", "50"))
	stop := errors.New("stopped by a person")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := New(e.config(), Options{Notify: func(text string) {
		require.Regexp(t, `slow down: HTTP 429 \(rate limit\), attempt 2 in 50s$`, text, "a narrow view shows the end")
		cancel(stop)
	}})
	_, err := c.Complete(ctx, Request{Messages: []Message{User("u")}})
	require.ErrorIs(t, err, stop)
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	body := `{"error":{"message":"Incorrect API key provided: ` + testKey + `"}}`
	_, err := ask(t, serve(t, reply(401, "application/json", body)).client(&waits{}))
	require.ErrorContains(t, err, "environment LOCAL_KEY")
	require.NotContains(t, err.Error(), testKey)

	e := serve(t, reply(401, "application/json", `{"detail":"Not authenticated"}`))
	c := e.config()
	c.APIKey, c.KeySource = "", ""
	_, err = ask(t, New(c, Options{}))
	require.ErrorContains(t, err, "Not authenticated")
	require.ErrorContains(t, err, "providers.local.apiKeyEnv")

	_, err = ask(t, serve(t, reply(404, "application/json", `{"error":"model \"m\" not found"}`)).client(&waits{}))
	require.ErrorContains(t, err, "models.default.name")

	_, err = ask(t, serve(t, reply(200, "text/html", "<!doctype html><title>Sign in</title>")).client(&waits{}))
	require.ErrorContains(t, err, "Sign in")
	require.ErrorContains(t, err, "providers.local.baseUrl")
}

func TestMissingServer(t *testing.T) {
	t.Parallel()
	e := serve(t, says("never"))
	c := e.client(&waits{})
	e.Close()
	_, err := ask(t, c)
	prosetest.Error(t, err)
	require.ErrorContains(t, err, "tried 3 times")
}

// An invalid certificate is reported without retries.
func TestWrongCertificateIsReported(t *testing.T) {
	t.Parallel()
	e := httptest.NewUnstartedServer(says("never"))
	e.Config.ErrorLog = log.New(io.Discard, "", 0)
	e.StartTLS()
	t.Cleanup(e.Close)
	var w waits
	_, err := ask(t, (&endpoint{Server: e}).client(&w))
	require.ErrorContains(t, err, "certificate")
	require.Empty(t, w.list)
}

// A redirect must not leak the key or the conversation to another host.
func TestNoRedirectToAnotherHost(t *testing.T) {
	t.Parallel()
	stranger := serve(t, says("got it"))
	for _, status := range []int{301, 302, 307, 308} {
		e := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, stranger.URL, status)
		})
		_, err := ask(t, e.client(&waits{}))
		require.ErrorContains(t, err, "redirects", status)
	}
	require.Empty(t, stranger.requests())

	e := serve(t)
	e.handlers = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, e.URL+"/v2/chat/completions", http.StatusTemporaryRedirect)
	}, says("ok")}
	require.Equal(t, "ok", mustAsk(t, e.client(&waits{})).Message.Content, "the same host may move a path")
}

func TestStalledStreamIsTriedAgain(t *testing.T) {
	t.Parallel()
	stall := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	e := serve(t, stall, silent, says("whole"))
	var w waits
	c := New(e.config(), Options{Sleep: w.sleep, Idle: 250 * time.Millisecond, FirstByte: 250 * time.Millisecond})
	require.Equal(t, "whole", mustAsk(t, c).Message.Content)
	require.GreaterOrEqual(t, len(w.list), 2, "a busy machine may be silent, too")
}

// The config sets how long an endpoint may be silent, with and without streaming.
func TestSilenceIsConfigured(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		e := serve(t, silent, says("whole"))
		c := e.config()
		c.Stream, c.IdleTimeout = stream, 200*time.Millisecond
		var w waits
		require.Equal(t, "whole", mustAsk(t, New(c, Options{Sleep: w.sleep})).Message.Content)
		require.NotEmpty(t, w.list)
	}
}

func TestCutStreamIsTriedAgain(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n")
		w.(http.Flusher).Flush()
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	ended := reply(200, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"ha\n")
	e := serve(t, cut, ended, says("whole"))
	require.Equal(t, "whole", mustAsk(t, e.client(&waits{})).Message.Content)
	require.Len(t, e.requests(), 3)
}

func TestErrorInsideAStream(t *testing.T) {
	t.Parallel()
	e := serve(t, reply(200, "text/event-stream",
		"data: {\"choices\":[{\"delta\":{\"content\":\"ha\"}}]}\n\ndata: {\"error\":{\"code\":502,\"message\":\"Provider disconnected\"}}\n\n"), says("ok"))
	var w waits
	require.Equal(t, "ok", mustAsk(t, e.client(&w)).Message.Content)
	require.Len(t, w.list, 1)
}

// Some servers stream nothing although they have an answer.
func TestEmptyStreamFallsBackToAWholeReply(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"no text":    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"no choices": "data: [DONE]\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, reply(200, "text/event-stream", stream), says("ok"))
			c := e.client(&waits{})
			require.Equal(t, "ok", mustAsk(t, c).Message.Content)
			mustAsk(t, c)
			asked := e.requests()
			require.Equal(t, []any{true, false, false}, []any{asked[0]["stream"], asked[1]["stream"], asked[2]["stream"]})
		})
	}
}

func TestLinesOfAnyLength(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<20)
	e := serve(t, reply(200, "text/event-stream",
		fmt.Sprintf("data:{\"choices\":[{\"delta\":{\"content\":%q},\"finish_reason\":\"stop\"}]}\r\n\r\n", long)))
	require.Equal(t, long, mustAsk(t, e.client(&waits{})).Message.Content)
}

// The client learns one thing from each rejection, and retries the request.
func TestLearnsWhatAnEndpointDoesNotTake(t *testing.T) {
	t.Parallel()
	history := []Message{System("s"), User("u"),
		{Role: "assistant", ToolCalls: []ToolCall{{ID: "a", Name: "read_file", Args: "{}"}}}, ToolResult("a", "r"), User("go on")}
	cases := []struct {
		name, refusal string
		check         func(t *testing.T, first, second map[string]any)
	}{
		{"stream_options", "Unrecognized request argument supplied: stream_options", func(t *testing.T, a, b map[string]any) {
			require.Contains(t, a, "stream_options")
			require.NotContains(t, b, "stream_options")
		}},
		{"tool_choice", "tool_choice is not supported by this model", func(t *testing.T, a, b map[string]any) {
			require.Contains(t, a, "tool_choice")
			require.NotContains(t, b, "tool_choice")
		}},
		{"response_format", "response_format: json_object is not available", func(t *testing.T, a, b map[string]any) {
			require.Contains(t, a, "response_format")
			require.NotContains(t, b, "response_format")
		}},
		{"empty reasoning", "Missing `reasoning_content` field in the assistant message at message index 2", func(t *testing.T, _, b map[string]any) {
			require.Equal(t, "", b["messages"].([]any)[2].(map[string]any)["reasoning_content"])
		}},
		{"streaming", "Streaming is not supported for this model", func(t *testing.T, a, b map[string]any) {
			require.Equal(t, []any{true, false}, []any{a["stream"], b["stream"]})
		}},
		{"foreign calls", "Function call is missing a thought_signature in functionCall parts.", func(t *testing.T, _, b map[string]any) {
			require.Equal(t, []any{
				map[string]any{"role": "system", "content": "s"}, map[string]any{"role": "user", "content": "u"},
				map[string]any{"role": "assistant", "content": "I call the tool read_file with {}"},
				map[string]any{"role": "user", "content": "The results:\n\nread_file: r\n\ngo on"},
			}, b["messages"])
		}},
		{"bridge", "Unexpected role 'user' after role 'tool'", func(t *testing.T, a, b map[string]any) {
			require.Len(t, a["messages"], 5)
			require.Equal(t, "assistant", b["messages"].([]any)[4].(map[string]any)["role"])
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body, err := marshal(map[string]any{"error": map[string]any{"message": c.refusal}})
			require.NoError(t, err)
			e := serve(t, reply(400, "application/json", string(body)), says("ok"))
			var w waits
			_, err = e.client(&w).Complete(t.Context(), Request{Messages: history, Tools: []Tool{{Name: "read_file"}}, JSON: true})
			require.NoError(t, err)
			require.Empty(t, w.list, "nothing to wait for")
			c.check(t, e.requests()[0], e.requests()[1])

			_, err = serve(t, reply(400, "application/json", string(body))).client(&w).Complete(t.Context(), Request{Messages: history})
			require.Error(t, err, "an endpoint that refuses for ever is not asked for ever")
		})
	}
}

func TestExtractorReturnsTheObject(t *testing.T) {
	t.Parallel()
	e := serve(t, says("```json\n{\"status\": \"done\"}\n```"))
	text, usage, err := extracted(t.Context(), e.config(), "Read this.", "the answer")
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"done"}`, text)
	require.Equal(t, 1, usage.Turns)
	asked := e.requests()[0]
	require.Equal(t, map[string]any{"type": "json_object"}, asked["response_format"])
	require.Contains(t, asked["messages"].([]any)[0].(map[string]any)["content"], "JSON", "endpoints in JSON mode refuse a prompt without the word")
}

func TestBadBaseURLHidesThePassword(t *testing.T) {
	t.Parallel()
	e := httptest.NewServer(nil)
	defer e.Close()
	for _, base := range []string{"", "ftp://user:hunter2@host/v1", "http://user:hunter2@ho st/"} {
		c := (&endpoint{Server: e}).config()
		c.BaseURL = base
		_, err := ask(t, New(c, Options{}))
		require.ErrorContains(t, err, "baseUrl")
		require.NotContains(t, err.Error(), "hunter2")
	}
}
