package react

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// said is the model's intended reply, before any fault.
type said struct {
	text  string
	calls []wanted
}

type wanted struct{ id, name, args string }

const rounds = 6

// saying returns the reply to a conversation: two calls in each round, then the end. It depends only on the
// conversation, so it is the same again after a fault.
func saying(r request) said {
	answered := 0
	for _, m := range r.Messages {
		if m.Role == "tool" {
			answered++
		}
	}
	round := answered / 2
	if round == rounds {
		return said{text: final}
	}
	call := func(name, letter string) wanted {
		return wanted{fmt.Sprintf("call%d%s", round, letter), name, fmt.Sprintf(`{"text":"%d%s \"quoted\" ✓"}`, round, letter)}
	}
	return said{text: "I go on.", calls: []wanted{call("echo", "a"), call("write", "b")}}
}

// faulty is an endpoint that applies a fault, chosen for each request, to its replies; nil means none.
type faulty struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	choose   func(asked int, r request) http.HandlerFunc
}

func serveFaulty(t *testing.T, choose func(asked int, r request) http.HandlerFunc) *faulty {
	t.Helper()
	f := &faulty{choose: choose}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked request
		if json.NewDecoder(r.Body).Decode(&asked) != nil {
			return
		}
		f.mu.Lock()
		f.requests = append(f.requests, asked)
		h := f.choose(len(f.requests)-1, asked)
		f.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// check runs the task and compares the result with a run without faults.
func (f *faulty) check(t *testing.T) {
	t.Helper()
	b := newBench(t, &model{Server: f.Server})
	_, answer := b.mustRun()
	require.Equal(t, Done, answer.Outcome)
	require.Equal(t, final, answer.Text)
	var want []string
	for i := range rounds {
		want = append(want, fmt.Sprintf(`echo %da "quoted" ✓`, i), fmt.Sprintf(`write %db "quoted" ✓`, i))
	}
	require.Equal(t, want, b.ran, "every call is run once, in order")
	require.Len(t, b.turns, 3*rounds+1, "what failed is no turn")
	for _, r := range f.requests {
		requireWellFormed(t, r)
	}
}

// requireWellFormed checks that every call has a unique ID and is answered right after it, in order.
func requireWellFormed(t *testing.T, r request) {
	t.Helper()
	var open []string
	seen := map[string]bool{}
	for _, m := range r.Messages {
		if m.Role == "tool" {
			require.NotEmpty(t, open)
			require.Equal(t, open[0], m.ToolCallID)
			open = open[1:]
			continue
		}
		require.Empty(t, open, "calls without an answer")
		for _, call := range m.ToolCalls {
			require.NotEmpty(t, call.ID)
			require.False(t, seen[call.ID], "the id %s twice", call.ID)
			seen[call.ID] = true
			open = append(open, call.ID)
		}
	}
	require.Empty(t, open)
}

// Each failure at every request, and each form for every reply.
func TestEachFault(t *testing.T) {
	t.Parallel()
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serveFaulty(t, func(asked int, r request) http.HandlerFunc {
				if asked%2 == 0 {
					return fail
				}
				return saying(r).stream(standard)
			})
			f.check(t)
			require.GreaterOrEqual(t, len(f.requests), 2*(rounds+1))
		})
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serveFaulty(t, func(_ int, r request) http.HandlerFunc { return form(saying(r)) })
			f.check(t)
			require.GreaterOrEqual(t, len(f.requests), rounds+1)
		})
	}
}

// Random mixtures: up to two consecutive failures, then a reply in any form. The seed is in the test's name.
func TestFaultsAtRandom(t *testing.T) {
	t.Parallel()
	failing, forming := slices.Sorted(maps.Keys(failures)), slices.Sorted(maps.Keys(forms))
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 16))
			failed := 0
			var way []string
			serveFaulty(t, func(_ int, r request) http.HandlerFunc {
				if failed < 2 && random.IntN(5) < 2 {
					failed++
					name := failing[random.IntN(len(failing))]
					way = append(way, name)
					return failures[name]
				}
				failed = 0
				name := forming[random.IntN(len(forming))]
				way = append(way, name)
				return forms[name](saying(r))
			}).check(t)
			t.Log(strings.Join(way, ", "))
		})
	}
}

// failures are the ways in which there is no reply.
var failures = map[string]http.HandlerFunc{
	"429":                    withHeader("Retry-After", "1", fail(429, `{"error":{"message":"slow down"}}`)),
	"429 in ms":              withHeader("Retry-After-Ms", "20", fail(429, `slow down`)),
	"408":                    fail(408, ``),
	"500":                    fail(500, `{"error":{"message":"internal"}}`),
	"502 HTML":               fail(502, `<html><head><title>Bad Gateway</title></head></html>`),
	"503 overloaded":         fail(503, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
	"529":                    fail(529, `{}`),
	"200 with an error":      fail(200, `{"error":{"message":"upstream is gone","code":502}}`),
	"200 with a list":        fail(200, `[{"error":{"code":503,"message":"try later","status":"UNAVAILABLE"}}]`),
	"200 with nothing":       fail(200, ``),
	"an error in a stream":   fail(200, "data: "+piece(`{"content":"ha"}`, "")+"\n\ndata: {\"error\":{\"message\":\"gone\",\"code\":502}}\n\n"),
	"an error as the finish": fail(200, "data: "+piece(`{"content":"ha"}`, "error")+"\n\n"),
	"a stream that ends":     fail(200, "data: "+piece(`{"content":"ha"}`, "")+"\n\n"),
	"a line that ends":       fail(200, "data: "+piece(`{"content":"ha"}`, "")+"\n\ndata: {\"choi"),
	"half a call":            fail(200, "data: "+piece(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"write","arguments":"{\"text\":"}}]}`, "")+"\n\n"),
	"an event that is none":  fail(200, "data: {\"choices\":[}\n\n"),
	"a malformed call":       fail(400, `{"error":{"message":"Failed to call a function","code":"tool_use_failed","failed_generation":"<function=echo>"}}`),
	"a connection that goes": cut(""),
	"a stream that is cut":   cut("data: " + piece(`{"content":"ha"}`, "") + "\n\n"),
	"a stream that stalls": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: "+piece(`{"content":"ha"}`, "")+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	},
}

func withHeader(name, value string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(name, value)
		h(w, r)
	}
}

// cut closes the connection after a text.
func cut(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if text != "" {
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}

// piece is a chunk of a stream.
func piece(delta, finish string) string {
	if finish != "" {
		finish = fmt.Sprintf(`,"finish_reason":%q`, finish)
	}
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":%s%s}]}`, delta, finish)
}

// quoted returns a text as JSON.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return string(b)
}

// forms are the forms of a reply.
var forms = map[string]func(said) http.HandlerFunc{
	"a stream":               func(s said) http.HandlerFunc { return s.stream(standard) },
	"comments and CR LF":     func(s said) http.HandlerFunc { return s.written(": wait\r\n\r\nevent: x\r\n", "\r\n\r\n", standard) },
	"no empty lines":         func(s said) http.HandlerFunc { return s.written("", "\n", standard) },
	"objects as arguments":   func(s said) http.HandlerFunc { return s.stream(objects) },
	"all with index 0":       func(s said) http.HandlerFunc { return s.stream(sameIndex) },
	"no ids":                 func(s said) http.HandlerFunc { return s.stream(noIDs) },
	"no ids, no index":       func(s said) http.HandlerFunc { return s.stream(noIDsNoIndex) },
	"one id for all":         func(s said) http.HandlerFunc { return s.stream(oneID) },
	"the name in each piece": func(s said) http.HandlerFunc { return s.stream(nameAgain) },
	"interleaved":            func(s said) http.HandlerFunc { return s.stream(interleaved) },
	"a trailing comma":       func(s said) http.HandlerFunc { return s.with(func(a string) string { return a[:len(a)-1] + ",}" }) },
	"written twice":          func(s said) http.HandlerFunc { return s.with(quoted) },
	"fenced": func(s said) http.HandlerFunc {
		return s.with(func(a string) string { return "```json\n" + a + "\n```" })
	},
	"whole":       func(s said) http.HandlerFunc { return s.whole(quoted(s.text)) },
	"whole, null": func(s said) http.HandlerFunc { return s.whole(s.orNull("null")) },
	"whole, parts": func(s said) http.HandlerFunc {
		return s.whole(`[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":` + quoted(s.text) + `}]`)
	},
	"thoughts in tags": func(s said) http.HandlerFunc { return s.whole(quoted("<think>hm</think>\n\n" + s.text)) },
}
