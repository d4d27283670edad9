package react

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/llm"
)

// A run of 200 turns completes, and each request begins with the complete previous one, byte for byte:
// providers' prompt caches need that.
func TestTwoHundredTurns(t *testing.T) {
	t.Parallel()
	const turns = 200
	var asked [][]byte
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked = append(asked, b)
		n := len(asked)
		switch {
		case n == turns:
			say(final)(w, r)
		case n%50 == 0:
			say("I am not ready.")(w, r) // causes a reminder
		case n%3 == 0:
			reply("tool_calls", "two", "a", "echo", fmt.Sprintf(`{"text":"%d"}`, n), "b", "write", fmt.Sprintf(`{"text":"%d"}`, n))(w, r)
		default:
			callTool("a", "echo", fmt.Sprintf(`{"text":"%d"}`, n))(w, r)
		}
	}))
	t.Cleanup(e.Close)
	b := newBench(t, &model{Server: e})
	b.Turns = 2 * turns
	s, answer := b.mustRun()
	require.Equal(t, Done, answer.Outcome)
	require.Equal(t, turns, answer.Bill.Usage().Turns)
	require.Len(t, asked, turns)

	messages := func(body []byte) []byte {
		end := bytes.Index(body, []byte(`],"model":`))
		require.Positive(t, end)
		return body[:end]
	}
	for i := 1; i < turns; i++ {
		require.True(t, bytes.HasPrefix(asked[i], messages(asked[i-1])), "question %d begins in another way", i+1)
	}
	var last request
	require.NoError(t, json.Unmarshal(asked[turns-1], &last))
	requireWellFormed(t, last)

	// Another process produces the same bytes.
	again, err := b.sessions.Open(s.ID)
	require.NoError(t, err)
	again.Messages = again.Messages[:len(again.Messages)-1]
	client := llm.New((&model{Server: e}).config(), llm.Options{})
	var tools []llm.Tool
	for _, spec := range b.Tools.Specs() {
		tools = append(tools, llm.Tool{Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters})
	}
	_, err = client.Complete(t.Context(), llm.Request{Messages: again.Messages, Tools: tools})
	require.NoError(t, err)
	require.Equal(t, string(asked[turns-1]), string(asked[turns]))
}
